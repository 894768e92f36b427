"""How the replica stands that answers `status`: whether what it shows is fresh, and whether anybody acts.

Rows that look well mean little while nobody leads or the API server is away, so this goes with them, and is
said first. An API server that is away breaks every source at once: that is one problem, not one a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

API_SERVER = "API server"
CONTROLLER = "mindie-ha"


def report(reasons: Sequence[str], *, role: str, leader: str, away_at_s: float | None) -> dict[str, Any]:
    """As plain data: `role`, `leader`, `as_of_s` (None: now) and `problems`."""
    problems = [{"object": CONTROLLER, "problem": reason} for reason in reasons]
    if away_at_s is not None and reasons:
        more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
        problems = [{"object": API_SERVER, "problem": f"does not answer: {reasons[0]}{more}"}]
    return {"role": role, "leader": leader, "as_of_s": away_at_s, "problems": problems}


def beside(overview: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """An overview with this; problems of the controller come first."""
    return {**overview, **said, "problems": [*said["problems"], *overview["problems"]]}
