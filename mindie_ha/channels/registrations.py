"""Bounded memory of who registered, and bounded seats for who is connected.

Anybody in the cluster can register any name, so both are bounds against a flood and not a permission.
A full register forgets the oldest name that nobody is subscribed to: its client is told "not registered"
and registers again. A full house of streams refuses the newcomer and keeps those that sit.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from mindie_ha.channels.errors import LimitReached
from mindie_ha.channels.settings import nobody

K = TypeVar("K", bound=Hashable)


class Registrations(Generic[K]):
    """Names in the order of their last registration, at most `limit` of them."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._names: OrderedDict[K, None] = OrderedDict()

    def __contains__(self, name: K) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: K, *, in_use: Callable[[K], bool]) -> None:
        """Remember `name`; raises LimitReached when every name that could be forgotten is `in_use`."""
        if name in self._names:
            self._names.move_to_end(name)
            return
        if len(self._names) >= self._limit:
            idle = next((known for known in self._names if not in_use(known)), None)
            if idle is None:
                raise LimitReached(f"{self._limit} jobs are registered and subscribed; no room for another")
            del self._names[idle]
        self._names[name] = None


class Seats:
    """Counts open streams, in all and per peer address."""

    def __init__(
        self,
        *,
        limit: int,
        limit_per_ip: int,
        many_behind: Callable[[str], bool] = nobody,
        what: str = "streams",
    ) -> None:
        self._limit = limit
        self._limit_per_ip = limit_per_ip
        self._many_behind = many_behind
        self._what = what
        self._taken: Counter[str] = Counter()
        self._total = 0

    @property
    def taken(self) -> int:
        """Streams that are open now."""
        return self._total

    @contextmanager
    def seat(self, peer_ip: str) -> Iterator[None]:
        """Hold one seat; raises LimitReached if there is none."""
        if self._total >= self._limit:
            raise LimitReached(f"{self._limit} {self._what} are open; no room for another")
        if self._taken[peer_ip] >= self._limit_per_ip and not self._many_behind(peer_ip):
            if not self._taken[peer_ip]:
                del self._taken[peer_ip]
            raise LimitReached(
                f"{self._limit_per_ip} {self._what} from {peer_ip} are open; no room for another"
            )
        self._total += 1
        self._taken[peer_ip] += 1
        try:
            yield
        finally:
            self._total -= 1
            self._taken[peer_ip] -= 1
            if not self._taken[peer_ip]:
                del self._taken[peer_ip]


__all__ = ["Registrations", "Seats"]
