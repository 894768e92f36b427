"""The lines of `status` that say who of an MS role is active."""

from __future__ import annotations

import time
from typing import Any

from mindie_ha.cli.status import role_lines


def pod(name: str, state: str, **more: Any) -> dict[str, Any]:
    """A pod as the API reports it."""
    reported = {"name": name, "terminating": False, "ms_state": state, "ms_reason": "why", "ms_since_s": None}
    return {**reported, **more}


def test_each_living_pod_of_an_ms_role_has_a_line() -> None:
    pods = [
        pod("c-0", "active", ms_since_s=time.time() - 33.5),
        pod("c-1", "standby"),
        pod("c-2", "unknown", terminating=True),
    ]
    assert list(role_lines({"pods": pods})) == ["active: c-0 for 33s: why", "standby: c-1: why"]


def test_other_pods_have_none() -> None:
    assert list(role_lines({"pods": [pod("p-0", "")]})) == []
