"""What an MS pod's endpoints say about its role: a few questions, one word.

MindIE-Motor, Coordinator: `/v1/readiness` 200 is the active one. 503 may be a standby or a pod without a
Prefill or Decode to serve; `/v2/health/ready` is the same test without the question of the master, so 200
there means standby. Where that is 503 too, only `/recvs_info` can still tell who is master, and what is left
is unknown. Controller: its endpoints do not tell the role (streams do), only that it lives. PyMotor:
`/readiness` 200 is the active one of either role; 503 beside a `/liveness` of 200 is a standby.

`/v1/node-manager/running-status` is never asked: it has a side effect.
Source: motor contract §2.2-2.3, §2.7-2.8; design §5.4.
"""

from __future__ import annotations

import json

from mindie_ha.channels.link_questions import ask_links
from mindie_ha.channels.ms_endpoints import Answer, Endpoints, Unanswered
from mindie_ha.model.roles import Activity, Inquiry, Told
from mindie_ha.model.settings import RoleSettings

OK, UNAVAILABLE = 200, 503
READINESS, HEALTH, CAN_SERVE, MASTER = "/v1/readiness", "/v1/health", "/v2/health/ready", "/recvs_info"
PYMOTOR_READINESS, PYMOTOR_LIVENESS = "/readiness", "/liveness"


async def ask(
    endpoints: Endpoints, inquiry: Inquiry, ip: str, *, settings: RoleSettings, server_port: int = 1026
) -> Told:
    """Ask one pod. Raises nothing that a pod can cause."""
    try:
        if inquiry is Inquiry.LINKS:
            return await ask_links(endpoints, ip, port=server_port)
        if inquiry is Inquiry.LEADS:
            return await _pymotor(endpoints, ip, settings)
        if inquiry is Inquiry.SERVES:
            return await _coordinator(endpoints, ip, settings)
        health = await endpoints.get(ip, settings.management_port, HEALTH)
        return Told(Activity.UNKNOWN, "its endpoints do not tell", healthy=health.status == OK)
    except Unanswered as error:
        return Told(Activity.UNKNOWN, str(error), reached=False)


async def _coordinator(endpoints: Endpoints, ip: str, settings: RoleSettings) -> Told:
    port = settings.status_port
    readiness = await endpoints.get(ip, port, READINESS)
    if readiness.status == OK:
        return Told(Activity.ACTIVE, f"{READINESS} is 200", healthy=True, serves=True)
    if readiness.status != UNAVAILABLE:
        return _strange(READINESS, readiness)
    healthy = (await endpoints.get(ip, port, HEALTH)).status == OK
    if (await endpoints.get(ip, port, CAN_SERVE)).status == OK:
        return Told(
            Activity.STANDBY, f"{READINESS} is 503, {CAN_SERVE} is 200", healthy=healthy, serves=False
        )
    return await _master(endpoints, ip, settings, healthy=healthy)


async def _master(endpoints: Endpoints, ip: str, settings: RoleSettings, *, healthy: bool) -> Told:
    """A Coordinator that could not serve, whoever it is."""
    idle = "it has no Prefill or no Decode to serve"
    try:
        answer = await endpoints.get(ip, settings.management_port, MASTER)
    except Unanswered as error:
        return Told(Activity.UNKNOWN, f"{idle}; {MASTER}: {error}", healthy=healthy, serves=False)
    is_master = _field(answer, "is_master")
    if is_master is None:
        malformed = answer.status == OK
        why = "nothing that can be read" if malformed else f"HTTP {answer.status}"
        return Told(
            Activity.UNKNOWN, f"{idle}; {MASTER}: {why}", healthy=healthy, malformed=malformed, serves=False
        )
    if is_master:
        return Told(Activity.ACTIVE, f"is_master; {idle}", healthy=healthy, serves=False)
    return Told(Activity.UNKNOWN, idle, healthy=healthy, serves=False)


async def _pymotor(endpoints: Endpoints, ip: str, settings: RoleSettings) -> Told:
    port = settings.management_port
    readiness = await endpoints.get(ip, port, PYMOTOR_READINESS)
    if readiness.status == OK:
        return Told(Activity.ACTIVE, f"{PYMOTOR_READINESS} is 200", healthy=True)
    if readiness.status != UNAVAILABLE:
        return _strange(PYMOTOR_READINESS, readiness)
    liveness = await endpoints.get(ip, port, PYMOTOR_LIVENESS)
    if liveness.status == OK:
        why = f"{PYMOTOR_READINESS} is 503, {PYMOTOR_LIVENESS} is 200"
        return Told(Activity.STANDBY, why, healthy=True)
    return Told(Activity.UNKNOWN, f"{PYMOTOR_LIVENESS} is {liveness.status}", healthy=False)


def _strange(path: str, answer: Answer) -> Told:
    return Told(Activity.UNKNOWN, f"{path} answered HTTP {answer.status}", malformed=True)


def _field(answer: Answer, name: str) -> bool | None:
    """A boolean of a JSON object; None where there is none."""
    if answer.status != OK:
        return None
    try:
        body = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    found = body.get(name) if isinstance(body, dict) else None
    return found if isinstance(found, bool) else None


__all__ = ["ask"]
