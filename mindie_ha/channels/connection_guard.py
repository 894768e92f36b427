"""Bounds the connections of one address to our ports, where the server itself cannot.

gRPC bounds connections in all and gives no hook per address, aiohttp bounds none; a front that accepts for
them would hide the peer's address, which decides who gets which table. So the guard looks at the sockets of
its own process (`/proc/self/fd`) and shuts down the youngest ones above a bound; the server sees a peer that
hung up. One look costs a few microseconds a socket and is left out while there are fewer files open than the
lowest bound. Between two looks a burst can stand for `every_s`.

Where there is no `/proc` (not Linux) nothing is bounded here; the servers' own bounds hold.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mindie_ha.channels.settings import nobody
from mindie_ha.kit.clock import Clock

OPEN_FILES = Path("/proc/self/fd")
Cut = Callable[[int, str, int], None]
"""Told the port, an address and how many of its connections were cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortLimits:
    """Bounds of one listening port; 0: unbounded here."""

    per_address: int
    total: int = 0


class ConnectionGuard:
    """Looks after the ports that were given to `watch`; `run` it with a supervisor."""

    def __init__(
        self,
        *,
        clock: Clock,
        on_cut: Cut,
        exempt: Callable[[str], bool] = nobody,
        every_s: float = 1.0,
    ) -> None:
        self._clock = clock
        self._on_cut = on_cut
        self._exempt = exempt
        self._every_s = every_s
        self._ports: dict[int, PortLimits] = {}
        self._first_seen: dict[tuple[int, str], int] = {}
        self._looks = 0

    def watch(self, port: int, limits: PortLimits) -> None:
        """Bound the connections to `port` from now on."""
        self._ports[port] = limits

    async def run(self) -> None:
        """Look again and again, for ever."""
        while True:
            await self._clock.sleep(self._every_s)
            for (port, ip), number in (await asyncio.to_thread(self.sweep)).items():
                self._on_cut(port, ip, number)

    def sweep(self) -> Counter[tuple[int, str]]:
        """Shut down what is above the bounds; how many, by port and address."""
        cut: Counter[tuple[int, str]] = Counter()
        bounds = [limit for one in self._ports.values() for limit in (one.per_address, one.total) if limit]
        if not bounds or _open_files() <= min(bounds):
            return cut
        self._looks += 1
        found = list(_connections(frozenset(self._ports)))
        peers = {(one.port, one.peer) for one in found}
        self._first_seen = {peer: self._first_seen.get(peer, self._looks) for peer in sorted(peers)}
        standing: Counter[tuple[int, str]] = Counter()
        for one in sorted(found, key=lambda each: self._first_seen[each.port, each.peer]):
            with closing(one.socket):
                limits = self._ports[one.port]
                address = (one.port, one.ip)
                above = 0 < limits.per_address <= standing[address] and not self._exempt(one.ip)
                if above or 0 < limits.total <= standing[one.port, ""]:
                    _hang_up(one.socket)
                    cut[address] += 1
                else:
                    standing[address] += 1
                    standing[one.port, ""] += 1
        return cut


@dataclass(frozen=True, slots=True)
class _Connection:
    port: int
    ip: str
    peer: str
    socket: socket.socket


def _open_files() -> int:
    try:
        return len(os.listdir(OPEN_FILES))
    except OSError:
        return 0


def _connections(ports: frozenset[int]) -> Iterator[_Connection]:
    """Our connected sockets on `ports`, each as a duplicate that the caller closes."""
    duplicates: set[str] = set()  # the first takes the number with which the folder itself was listed
    for name in os.listdir(OPEN_FILES):
        if name in duplicates:
            continue
        try:
            if not os.readlink(OPEN_FILES / name).startswith("socket:"):
                continue
            # A duplicate: the number may belong to another file by now, this object cannot change any more.
            found = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
        duplicates.add(str(found.fileno()))
        try:
            ours = found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockname()[1] in ports
            ip, port = found.getpeername()[:2] if ours else ("", 0)
            if ours:
                yield _Connection(found.getsockname()[1], _plain(ip), f"{ip} {port}", found)
                continue
        except OSError:
            pass  # a listening socket, or a peer that just left
        found.close()


def _plain(ip: str) -> str:
    """An IPv4 address in IPv6 clothes is undressed."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it is gone already


__all__ = ["ConnectionGuard", "Cut", "PortLimits"]
