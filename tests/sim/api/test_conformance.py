"""The embedded API server answers as a real one did: status, shape, order of events (tools/conformance)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.server import ApiServer
from tools.conformance.playing import RECORDED, Case, cases
from tools.conformance.running import answered

CASES = tuple(cases())
ANSWERS: dict[str, list[Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.mark.looptime
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_it_answers_as_a_real_api_server(case: Case) -> None:
    server = ApiServer(clock=LoopClock(wall_origin_s=1_800_000_000), entropy=Entropy(1))
    got = await answered(server, case, namespace="conformance")
    for step, mine, real in zip(case.steps, got, ANSWERS[case.name], strict=True):
        assert mine == real, step


def test_every_case_was_recorded() -> None:
    assert {case.name for case in CASES} == set(ANSWERS), "run python -m tools.conformance"
