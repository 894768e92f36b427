"""One loopback address for every node and every pod.

All of 127.0.0.0/8 is this machine, so an actor can listen on its pod's address and dial out from it, and
the peer's IP is the pod's IP. Addresses come in sequence and are not used twice before the range is full;
the seed chooses where the range starts, so that two worlds on one machine rarely meet. 127.0.0.1 is
never given.
"""

from __future__ import annotations

import ipaddress

from mindie_ha.kit.entropy import Entropy

FIRST = int(ipaddress.IPv4Address("127.16.0.1"))
LAST = int(ipaddress.IPv4Address("127.250.255.254"))


class AddressPool:
    """Hands out addresses."""

    def __init__(self, *, entropy: Entropy) -> None:
        blocks = (LAST - FIRST) >> 16
        self._next = FIRST + (entropy.child("addresses").randint(0, blocks - 1) << 16)
        self._taken: set[str] = set()

    def allocate(self) -> str:
        """An address nobody has."""
        for _ in range(LAST - FIRST + 1):
            candidate = ipaddress.IPv4Address(self._next)
            self._next = FIRST if self._next >= LAST else self._next + 1
            # .0 and .255 are legal on loopback, but they look like mistakes.
            if str(candidate) not in self._taken and 0 < int(candidate) % 256 < 255:
                self._taken.add(str(candidate))
                return str(candidate)
        raise RuntimeError("the address pool is empty: more than 15 million pods and nodes are alive")

    def reserve(self, address: str) -> None:
        """Keep an address that is in use already."""
        self._taken.add(address)

    def release(self, address: str) -> None:
        """Give an address back."""
        self._taken.discard(address)
