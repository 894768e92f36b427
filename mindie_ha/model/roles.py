"""Who of an MS role is active, as far as somebody said so.

`unknown` is a word of its own: an endpoint that was never reached, or a Coordinator that has no Prefill or no
Decode to serve, says nothing about who is active. Nothing may be restarted for `unknown`.

Source: motor contract §2.3, §2.7-2.8, §3.1, §9 (4); design §5.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Activity(StrEnum):
    """What one pod of an MS role does now."""

    ACTIVE = "active"
    STANDBY = "standby"
    UNKNOWN = "unknown"


class Inquiry(StrEnum):
    """Which questions a pod is asked."""

    SERVES = "serves"  # whether it takes requests, and is the master
    LIVES = "lives"  # whether it is well; its endpoints tell no more
    LINKS = "links"  # a server: to whom it is linked
    LEADS = "leads"  # PyMotor: whether it leads, of either role


@dataclass(frozen=True, slots=True)
class Told:
    """What a pod's own endpoints answered. `healthy` None: not asked. `reached` False: nothing answered."""

    activity: Activity
    reason: str
    healthy: bool | None = None
    reached: bool = True
    malformed: bool = False  # an answer that no MS pod gives
    subscribed: bool = False  # it holds a rank table stream
    serves: bool | None = None  # Coordinator: whether it takes requests now
    peers: frozenset[str] | None = None  # server: addresses that it is linked to; None: not known


@dataclass(frozen=True, slots=True)
class PodRole:
    """One pod as we know it. `since_s`: wall time since when its activity is this one."""

    activity: Activity
    reason: str
    since_s: float
    healthy: bool | None = None  # what its health endpoint answers; None: not asked or not reached
    subscribed: bool = False  # it holds a rank table stream
    serves: bool | None = None  # Coordinator: whether it takes requests now; None: not known


@dataclass(frozen=True, slots=True)
class Links:
    """What a server pod last said of its links: the addresses, None where that cannot be read.
    `since_s`: wall time since when it says the same."""

    peers: frozenset[str] | None
    since_s: float


@dataclass(frozen=True, slots=True)
class Streams:
    """The rank table streams of a service. Times are wall time."""

    ips: frozenset[str] = frozenset()  # from where the open ones come
    listening_since_s: float = 0.0  # we take subscribers since then
    left_s: float | None = None  # when the newest of those that ended did

    @property
    def none_since_s(self) -> float | None:
        """Since when nobody is subscribed; None while somebody is."""
        return None if self.ips else max(self.listening_since_s, self.left_s or 0.0)


__all__ = ["Activity", "Inquiry", "Links", "PodRole", "Streams", "Told"]
