"""What server instances say of their links: `linkStatus` of the management API, from memory.

A Decode pod is linked to every Prefill pod that runs, as the leading Controller tells it to. Pods of a job in
`stale_links` imitate a Decode that does not get over a rebuilt peer: they never link to a pod whose name ran
before them with another UID. Restarted, they link again. Source: motor contract §2.4.
"""

from __future__ import annotations

from mindie_ha.sim.actors.programs import PodSandbox

MANAGEMENT_PORT = 1026
STATUS = "/v1/status"


class ServerLinks:
    """Knows every server pod that was ever started; a run creates no more than some hundreds."""

    def __init__(self, stale: tuple[str, ...]) -> None:
        self._stale = stale
        self._pods: dict[str, PodSandbox] = {}  # the newest of each name
        self._lives: dict[str, int] = {}
        self._seen: dict[str, dict[str, int]] = {}  # UID -> lives of all names when it started

    def started(self, pod: PodSandbox) -> None:
        """A server pod's container starts."""
        name = f"{pod.namespace}/{pod.name}"
        before = self._pods.get(name)
        if before is None or before.uid != pod.uid:
            self._lives[name] = self._lives.get(name, 0) + 1
        self._pods[name] = pod
        self._seen[pod.uid] = dict(self._lives)

    def reply(self, ip: str, port: int, path: str) -> tuple[int, object] | None:
        """What a server pod at `ip` answers; None where none of them is."""
        pod = next((each for each in self._pods.values() if each.ip == ip), None)
        if pod is None:
            return None
        if (port, path) != (MANAGEMENT_PORT, STATUS):
            return 404, None
        peers = [{"target": each.ip, "link": "ok"} for each in self._peers(pod)]
        service = {"roleStatus": "RoleReady", "currentRole": _role(pod)}
        return 200, {"service": service, "resource": {}, "linkStatus": {"peers": peers}}

    def _peers(self, pod: PodSandbox) -> list[PodSandbox]:
        stale = any(f"{pod.namespace}/{pod.name}".startswith(f"{job}-") for job in self._stale)
        return [
            each
            for name, each in sorted(self._pods.items())
            if each.namespace == pod.namespace
            and _role(each) != _role(pod)
            and not (stale and self._lives[name] > max(1, self._seen[pod.uid].get(name, 0)))
        ]


def _role(pod: PodSandbox) -> str:
    role = f"{pod.env.get('ROLE', '')} {pod.name}"
    return "decode" if "decode" in role or "-d" in pod.name else "prefill"


__all__ = ["ServerLinks"]
