"""A step that speaks of what is not there ends the scenario with one line: where, and what is wrong."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mindie_ha.demo import scenarios
from mindie_ha.demo.moves import Moves
from mindie_ha.demo.stage import staged
from mindie_ha.demo.steps import Step
from mindie_ha.demo.stories import Story
from mindie_ha.kit.logs import silent_log
from mindie_ha.model.errors import MindieHaError

SPEED = 40.0
POD = "mindie/mindie-server-0-master-0"
pytestmark = pytest.mark.timeout(60)

BEFORE_A_FAULT = {
    "no pod": ({"chip": {"under": "mindie/nobody"}}, "no pod mindie/nobody was ever on a node"),
    "no process": ({"exit": {"pod": "mindie/nobody"}}, "there is no pod mindie/nobody on a node"),
    "no card": ({"chip": {"under": POD, "card": 9}}, f"{POD} holds 8 cards, so there is no card 9"),
    "no level": (
        {"chip": {"under": POD, "level": "Separate"}},
        'needs "level", one of NotHandleFault, SubHealthFault,',
    ),
    "no board level": ({"board": {"under": POD, "level": "Separate"}}, 'needs "level", one of NotHandleF'),
    "no switch": ({"switch": {"under": POD}}, "only servers of model a3 have switches"),
    "no nodes": ({"nodes_not_ready": {"count": 7}}, "the cluster has 6 nodes, not 7"),
    "no report": ({"public_fault_over": "ccae-0001"}, "no public fault ccae-0001 was reported"),
    "no node": ({"node_returns": {"was_under": "mindie/nobody"}}, "on no node when the first fault was set"),
}
AFTER_A_FAULT = {
    "no taint": ({"untaint": {"was_under": POD}}, "our taint is not on node-"),
    "twice": ({"public_fault": {"id": "ccae-0001", "under": POD}}, "ccae-0001 was reported before"),
}


async def test_a_move_that_cannot_be_made_is_one_line() -> None:
    scenario = scenarios.load("last-instance-lost")
    async with staged(scenario, speed=SPEED, log=silent_log()) as stage:
        await stage.apply(scenario.objects(), where="manifest")
        seen = stage.journal.observations
        moves = Moves(stage, story=Story(Console(file=io.StringIO()), speed=SPEED))
        await stage.world.wait_for(
            lambda: (pod := seen.placed(POD)) is not None and bool(pod.devices), deadline_s=120
        )

        for step, said in BEFORE_A_FAULT.values():
            assert said in await problem(moves, step)
        assert seen.faults == []

        mild = {"id": "ccae-0001", "under": POD, "code": "200001011"}
        await moves.take(Step.model_validate({"public_fault": mild}), "step 1")
        for step, said in AFTER_A_FAULT.values():
            assert said in await problem(moves, step)


async def problem(moves: Moves, step: dict[str, object]) -> str:
    with pytest.raises(MindieHaError) as caught:
        await moves.take(Step.model_validate(step), "step 1")
    text = str(caught.value)
    assert text.startswith("step 1: ")
    assert "\n" not in text
    return text
