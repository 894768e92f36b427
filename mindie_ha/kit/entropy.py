"""The one source of randomness and fresh identifiers.

Seeded, it makes a run repeat exactly; unseeded it is the system's. Nothing here is used for secrets.
"""

from __future__ import annotations

import random
import uuid


class Entropy:
    """Random numbers and uuids; one seed is one history."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._random = random.Random(seed)  # noqa: S311 - repeatability, not secrecy

    def uniform(self, low: float, high: float) -> float:
        """A float between `low` and `high`."""
        return self._random.uniform(low, high)

    def randint(self, low: int, high: int) -> int:
        """An integer between `low` and `high`, both included."""
        return self._random.randint(low, high)

    def jitter(self, value: float, share: float = 0.2) -> float:
        """`value` moved by at most `share` of itself up or down."""
        return value * (1 + self.uniform(-share, share))

    def uuid(self) -> str:
        """A fresh RFC 4122 version 4 identifier."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def child(self, name: str) -> Entropy:
        """An independent source, so that one consumer's draws do not move another's."""
        return Entropy(None if self.seed is None else hash_seed(self.seed, name))


def hash_seed(seed: int, name: str) -> int:
    """A stable number from a seed and a name (`hash()` differs between processes)."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{name}").int & 0x7FFF_FFFF_FFFF_FFFF
