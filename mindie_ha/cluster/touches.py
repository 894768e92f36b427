"""What one change concerns: scopes directly, or nodes and workloads, which the store expands to scopes."""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.ids import ObjectKey, ScopeKey


@dataclass(slots=True)
class Touched:
    """What one change concerns."""

    scopes: set[ScopeKey]
    nodes: set[str]
    urgent: bool = False
    jobs: frozenset[ObjectKey] = frozenset()  # workloads by namespace and name
    everything: bool = False  # every service and job


def nothing() -> Touched:
    """A change that concerns nobody."""
    return Touched(set(), set())


__all__ = ["Touched", "nothing"]
