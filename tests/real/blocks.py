"""Loopback addresses that no other test run on this machine uses.

A simulated cluster takes its addresses from one of some 230 blocks of 127.0.0.0/8; its seed chooses. Two
clusters in one block would hear each other's pods, and one process could not listen where the other does. So
a block is claimed by a socket that is bound in it, which the kernel takes back however the test run ends.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.actors.addresses import AddressPool

SEEDS = range(101, 1101)
PORT = 9  # of the block's first address; nothing of ours listens there


def first_address(seed: int) -> str:
    """Where the addresses of a simulated cluster with this seed begin."""
    return AddressPool(entropy=Entropy(seed).child("world")).allocate()  # as `mindie-ha sim` does


@contextmanager
def claimed_seed() -> Iterator[int]:
    """A seed whose block of addresses is ours alone until the context ends."""
    for seed in SEEDS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind((first_address(seed), PORT))
            except OSError:
                continue
            yield seed
            return
    raise AssertionError("every block of loopback addresses is in use: end other test runs")


def beside(address: str, number: int) -> str:
    """Another address of the same block, far from those that pods get."""
    first, second, *_ = address.split(".")
    return f"{first}.{second}.200.{number}"
