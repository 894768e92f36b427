"""Public faults as remembered: reports of other programs about cards, which nobody repeats.

A report is an edge: who missed it will not hear it again. So every one is written down before its sender
gets an answer, in one bounded ledger. The key is (node, resource, fault id); times are wall time in seconds.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mindie_ha.model.recoveries import Frozen


class PublicFault(Frozen):
    """One reported fault on one node. Its first report counts; a repeated one changes only `seen_at_s`."""

    node: str
    resource: str  # the program that reports
    fault_id: str
    fault_type: str  # NPU, Node, Network, Storage
    code: str
    level: str  # by the table that held when it was reported
    devices: tuple[int, ...]  # physical card numbers
    fault_time_s: int  # the sender's word, whole seconds
    added_at_s: float
    seen_at_s: float  # when it was reported last
    ends_at_s: float | None = None  # recovered already, or reported as momentary: gone then


class Recovered(Frozen):
    """A recovery that came before its fault: a fault with this key that comes before `until_s` ends then."""

    node: str
    resource: str
    fault_id: str
    until_s: float


class PublicFaultLedger(Frozen):
    """Memory of all public faults of the cluster."""

    schema_version: Literal[1] = 1
    faults: tuple[PublicFault, ...] = ()
    recovered: tuple[Recovered, ...] = ()
    read: dict[str, str] = Field(default_factory=dict)  # "<ns>/<name>" of a ConfigMap -> content answered


__all__ = ["PublicFault", "PublicFaultLedger", "Recovered"]
