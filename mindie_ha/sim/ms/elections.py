"""Which replica of an MS role is active.

The real roles hold an etcd lock of 20 s that a standby polls every 5 s; a lock whose holder died is free
only when its lease has run out. With one replica there is no lock: the pod is active at once, also as the
successor of a dead one. A group counts as having a standby from the moment two members were alive together.
(Source: motor contract §3.1.)
"""

from __future__ import annotations

from collections.abc import Collection

from mindie_ha.kit.clock import Clock


class Election:
    """One lock of one role of one service. Members are named by pod UID."""

    def __init__(self, clock: Clock, *, lease_s: float, leads_first: Collection[str] = ()) -> None:
        self._leads_first = leads_first
        self._led = False
        self._clock = clock
        self._lease_s = lease_s
        self._members: set[str] = set()
        self._has_standby = False
        self._free_at_s = 0.0
        self.leader: str | None = None

    def join(self, member: str) -> None:
        """A replica is alive."""
        self._members.add(member)
        self._has_standby = self._has_standby or len(self._members) > 1

    def leave(self, member: str) -> None:
        """A replica died; its lock, if it held it, lives on for the lease."""
        self._members.discard(member)
        if self.leader == member:
            self.leader = None
            self._free_at_s = self._clock.monotonic() + (self._lease_s if self._has_standby else 0.0)

    def acquire(self, member: str, *, pod: str = "") -> bool:
        """True when `member` is, or has just become, the leader. `pod`: its `namespace/name`."""
        if self._held_back(pod):
            return False
        if self.leader is None and member in self._members and self._clock.monotonic() >= self._free_at_s:
            self.leader, self._led = member, True
        return self.leader == member

    def _held_back(self, pod: str) -> bool:
        """Whether another replica of this job is to be the very first leader."""
        job = pod.rsplit("-", 2)[0]
        return not self._led and any(
            first != pod and first.rsplit("-", 2)[0] == job for first in self._leads_first
        )


__all__ = ["Election"]
