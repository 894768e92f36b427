"""How consumers of fault messages are told how bad something is: three words for all levels.

A level that nobody defines is `Healthy`, as in the reference: the consumer stops instances on `UnHealthy`,
and nothing may be stopped for a text that nobody understands. Source: fault input contract §4.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Health(StrEnum):
    """State of a card, node or job in a fault message."""

    HEALTHY = "Healthy"
    SUB_HEALTHY = "SubHealthy"
    UNHEALTHY = "UnHealthy"


_ORDER = tuple(Health)
_SUB_HEALTHY = frozenset({"SubHealthFault", "SubHealth", "PreSeparate", "PreSeparateFault", "PreSeparateNPU"})
_UNHEALTHY = frozenset(
    {"RestartRequest", "RestartBusiness", "RestartNPU", "FreeRestartNPU"}
    | {"SeparateNPU", "SeparateFault", "Separate", "ManuallySeparateNPU"}
)


def health_of(level: str) -> Health:
    """What a level means to a consumer."""
    if level in _UNHEALTHY:
        return Health.UNHEALTHY
    return Health.SUB_HEALTHY if level in _SUB_HEALTHY else Health.HEALTHY


def worst(states: Iterable[Health]) -> Health:
    """The worst of `states`; Healthy for none."""
    return max(states, key=_ORDER.index, default=Health.HEALTHY)


def worse_level(one: str, other: str) -> str:
    """The level that means more; the first of two that mean the same."""
    return max((one, other), key=lambda level: _ORDER.index(health_of(level)))


__all__ = ["Health", "health_of", "worse_level", "worst"]
