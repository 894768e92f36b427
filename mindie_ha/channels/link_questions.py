"""Which peers a server instance is linked to, as its management API says.

`/v2/status` is that of several nodes, `/v1/status` that of one; the second is asked where the first does not
exist. What is read is `linkStatus.peers[]{target, link}`; a link counts that is `ok`. Targets are addresses,
with or without a port; where one is of another form, or the Decode has no role yet, nothing is known.

Source: motor contract §2.4.
"""

from __future__ import annotations

import ipaddress
import json

from mindie_ha.channels.ms_endpoints import Answer, Endpoints
from mindie_ha.model.roles import Activity, Told

MULTI, SINGLE = "/v2/status", "/v1/status"
OK, NOT_FOUND = 200, 404
LINKED, READY = "ok", "RoleReady"
MAX_PEERS = 4096


async def ask_links(endpoints: Endpoints, ip: str, *, port: int) -> Told:
    """Ask one pod. Raises Unanswered."""
    answer = await endpoints.get(ip, port, MULTI)
    path = MULTI
    if answer.status == NOT_FOUND:
        path, answer = SINGLE, await endpoints.get(ip, port, SINGLE)
    if answer.status != OK:
        return Told(Activity.UNKNOWN, f"{path} answered HTTP {answer.status}", malformed=True)
    peers = linked(answer)
    if peers is None:
        return Told(Activity.UNKNOWN, f"{path}: its links cannot be read", malformed=True)
    return Told(Activity.UNKNOWN, f"{path}: linked to {len(peers)} addresses", peers=peers)


def linked(answer: Answer) -> frozenset[str] | None:
    """The addresses of the peers with a link; None where that is not known."""
    try:
        body = json.loads(answer.body)
        service, peers = body["service"], body["linkStatus"]["peers"]
        ready = service["roleStatus"] == READY
        targets = [peer["target"] for peer in peers if peer["link"] == LINKED]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not ready or not isinstance(peers, list) or len(peers) > MAX_PEERS:
        return None
    found = [_address(target) for target in targets]
    return None if None in found else frozenset(each for each in found if each is not None)


def _address(target: object) -> str | None:
    if not isinstance(target, str):
        return None
    host = target.rpartition(":")[0] if target.count(":") == 1 else target
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None


__all__ = ["ask_links", "linked"]
