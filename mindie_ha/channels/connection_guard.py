"""Bounds the connections of one address to our ports, where the server itself cannot.

gRPC bounds connections in all and gives no hook per address, aiohttp bounds none; a front that accepts for
them would hide the peer's address, which decides who gets which table. So the guard looks at the sockets of
its own process (`/proc/self/fd`) and shuts down the youngest ones above a bound; the server sees a peer that
hung up. One look costs a few microseconds a socket and is left out while there are fewer files open than the
lowest bound. Between two looks a burst can stand for `every_s`. It may take all files that the process can
have open, so a look needs no more than those that are kept for it.

Where there is no `/proc` (not Linux) nothing is bounded here; the servers' own bounds hold.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mindie_ha.channels.settings import nobody
from mindie_ha.kit.clock import Clock

OPEN_FILES = Path("/proc/self/fd")
SPARE = 2  # files kept for a look
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
        self._spare: list[int] = []

    def watch(self, port: int, limits: PortLimits) -> None:
        """Bound the connections to `port` from now on."""
        self._ports[port] = limits

    async def run(self) -> None:
        """Look again and again, for ever."""
        try:
            while True:
                self._keep_spare()
                await self._clock.sleep(self._every_s)
                for (port, ip), number in (await asyncio.to_thread(self.sweep)).items():
                    self._on_cut(port, ip, number)
        finally:
            self._give_spare()

    def _keep_spare(self) -> None:
        while len(self._spare) < SPARE:
            try:
                self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return

    def _give_spare(self) -> None:
        while self._spare:
            os.close(self._spare.pop())

    def sweep(self) -> Counter[tuple[int, str]]:
        """Shut down what is above the bounds; how many, by port and address."""
        cut: Counter[tuple[int, str]] = Counter()
        bounds = [limit for one in self._ports.values() for limit in (one.per_address, one.total) if limit]
        if not bounds or _open_files() <= min(bounds):
            return cut
        self._give_spare()
        self._looks += 1
        found = list(_connections(frozenset(self._ports)))
        peers = {(one.port, one.peer) for one in found}
        self._first_seen = {peer: self._first_seen.get(peer, self._looks) for peer in sorted(peers)}
        standing: Counter[tuple[int, str]] = Counter()
        for one in sorted(found, key=lambda each: self._first_seen[each.port, each.peer]):
            limits = self._ports[one.port]
            address = (one.port, one.ip)
            above = 0 < limits.per_address <= standing[address] and not self._exempt(one.ip)
            if above or 0 < limits.total <= standing[one.port, ""]:
                cut[address] += _hang_up(one)
            else:
                standing[address] += 1
                standing[one.port, ""] += 1
        return cut


@dataclass(frozen=True, slots=True)
class _Connection:
    port: int
    ip: str
    peer: str
    number: int  # of the open file
    inode: int  # of the socket, since the number may belong to another file by now


def _open_files() -> int:
    try:
        return len(os.listdir(OPEN_FILES))
    except FileNotFoundError:
        return 0
    except OSError:
        return sys.maxsize  # not one more can be opened


def _connections(ports: frozenset[int]) -> Iterator[_Connection]:
    """Our connected sockets on `ports`; no more than one file is opened at a time."""
    try:
        names = os.listdir(OPEN_FILES)
    except OSError:
        return
    for name in names:
        try:
            if not os.readlink(OPEN_FILES / name).startswith("socket:"):
                continue
            with _duplicate(int(name)) as found:
                if found.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                port = found.getsockname()[1]
                if port in ports:
                    ip, theirs = found.getpeername()[:2]
                    inode = os.fstat(found.fileno()).st_ino
                    yield _Connection(port, _plain(ip), f"{ip} {theirs}", int(name), inode)
        except OSError:
            continue  # closed meanwhile, a listening socket, or a peer that just left


def _duplicate(number: int) -> socket.socket:
    """The socket behind an open file as an object that stays the same, whatever becomes of the number."""
    return socket.socket(fileno=os.dup(number))


def _plain(ip: str) -> str:
    """An IPv4 address in IPv6 clothes is undressed."""
    address = ipaddress.ip_address(ip.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _hang_up(connection: _Connection) -> bool:
    """Whether it was there to be hung up on."""
    try:
        with _duplicate(connection.number) as found:
            if os.fstat(found.fileno()).st_ino != connection.inode:
                return False
            found.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    return True


__all__ = ["ConnectionGuard", "Cut", "PortLimits"]
