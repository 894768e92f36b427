"""The boot script of a MindIE pod, as far as others can observe it.

It polls the mounted `global-ranktable` once a second until `status` is `completed`, then decides the pod's
role: by env APP_TYPE when there is one, otherwise by finding POD_IP in the table; a pod that is not in
it exits with 255. After that the mount is never read again. (Source: motor contract §1.1.)
"""

from __future__ import annotations

import json
from typing import Any

from mindie_ha.kit.clock import Clock
from mindie_ha.sim.actors.programs import PodSandbox

VOLUME = "global-ranktable"
FILE = "global_ranktable.json"
CONTROLLER = "controller"
COORDINATOR = "coordinator"
SERVER = "server"
EXIT_NOT_IN_TABLE = 255
_LARGEST_FILE = 100 * 1024 * 1024


class NotInTableError(Exception):
    """The completed table does not name this pod; the script exits with `EXIT_NOT_IN_TABLE`."""


async def boot(sandbox: PodSandbox, *, clock: Clock, poll_s: float) -> str:
    """Wait for a completed table and return its text; NotInTableError when it is not for this pod."""
    while True:
        text = sandbox.read_volume(VOLUME).get(FILE, "")
        table = completed_table(text)
        if table is not None:
            if "APP_TYPE" not in sandbox.env and role_by_ip(table, sandbox.env.get("POD_IP", "")) is None:
                raise NotInTableError(f"no server of the table has the IP of pod {sandbox.name}")
            return text
        await clock.sleep(poll_s)


def role_of(sandbox: PodSandbox) -> str | None:
    """The role of a MindIE pod from APP_TYPE, else from its `app` label; None for any other pod."""
    app = sandbox.env.get("APP_TYPE") or sandbox.labels.get("app", "")
    if not app.startswith("mindie-ms-"):
        return None
    return next((role for role in (CONTROLLER, COORDINATOR) if role in app), SERVER)


def completed_table(text: str) -> dict[str, Any] | None:
    """The decoded table if it can be read and is completed."""
    if not text or len(text) > _LARGEST_FILE:
        return None
    try:
        table = json.loads(text)
    except ValueError:
        return None
    return table if isinstance(table, dict) and table.get("status") == "completed" else None


def role_by_ip(table: dict[str, Any], pod_ip: str) -> str | None:
    """The role of the group that lists `pod_ip`: 0 coordinator, 1 controller, 2 and above server."""
    groups = table.get("server_group_list")
    for group in groups if isinstance(groups, list) else []:
        servers = group.get("server_list") if isinstance(group, dict) else None
        for server in servers if isinstance(servers, list) else []:
            if isinstance(server, dict) and server.get("server_ip") == pod_ip:
                return {"0": COORDINATOR, "1": CONTROLLER}.get(str(group.get("group_id")), SERVER)
    return None


__all__ = [
    "CONTROLLER",
    "COORDINATOR",
    "EXIT_NOT_IN_TABLE",
    "FILE",
    "SERVER",
    "VOLUME",
    "NotInTableError",
    "boot",
    "role_by_ip",
    "role_of",
]
