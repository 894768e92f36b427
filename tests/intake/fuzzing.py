"""How hard the parsers are tried: 500 examples with every run, 10,000 by `make fuzz`."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

FUZZED = settings(
    max_examples=max(500, settings().max_examples),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
