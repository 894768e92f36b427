"""Every shipped scenario, end to end: real gRPC, real HTTP, an independent judge. Real time, a fast clock."""

from __future__ import annotations

import asyncio
import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from mindie_ha.demo import scenarios
from mindie_ha.demo.plays import Performance, Play
from mindie_ha.demo.reports import report
from mindie_ha.demo.stage import staged
from mindie_ha.demo.stories import Story
from mindie_ha.kit.logs import silent_log

SPEED = 20.0
pytestmark = pytest.mark.timeout(60)


async def played(name: str, console: Console) -> Performance:
    """Play a scenario on its own stage, and prove that nothing is left running."""
    scenario = scenarios.load(name)
    before = asyncio.all_tasks()
    speed = scenario.pace(SPEED)
    story = Story(console, speed=speed)
    story.opening(scenario)
    async with staged(scenario, speed=speed, log=silent_log()) as stage:
        story.follow(stage.journal)
        performance = await Play(stage, story=story).perform(began_s=time.monotonic())
    assert asyncio.all_tasks() == before
    return performance


@pytest.mark.parametrize("name", scenarios.names()[1:])  # the first one has its own test
async def test_a_scenario_plays_well(name: str) -> None:
    performance = await played(name, Console(file=io.StringIO()))

    assert [(check.rule, check.complaints) for check in performance.verdict.checks if not check.kept] == []


async def test_the_example_of_the_documentation_plays_well(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    path = tmp_path / "example.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    performance = await played(str(path), Console(file=io.StringIO()))

    assert [(check.rule, check.complaints) for check in performance.verdict.checks if not check.kept] == []


async def test_the_first_story_and_its_document() -> None:
    told = io.StringIO()
    performance = await played("prefill-chip-fault", Console(file=told, width=200))
    document = report("prefill-chip-fault", performance.observations, performance.verdict)
    [recovery] = document.recoveries
    faulty = {(fault.node, fault.device) for fault in document.faults}

    assert document.ok
    assert recovery.rungs == ("job",)
    assert [pod.pod for pod in recovery.deleted] == [
        "mindie/mindie-server-p0-master-0",
        "mindie/mindie-server-p0-worker-0",
    ]
    assert [pod.pod for pod in recovery.created] == [pod.pod for pod in recovery.deleted]
    assert not faulty & {(pod.node, device) for pod in recovery.created for device in pod.devices}
    assert len(document.untouched) == 8
    assert len({table.digest for table in document.ranktables}) == 3
    assert document.ranktables[0].groups == document.ranktables[-1].groups
    assert {got.channel for got in document.ranktables[-1].delivered_to} == {"configmap", "grpc", "http"}
    story = told.getvalue()
    for words in (
        "A chip fails under a Prefill instance",
        "fault",
        "isolated",
        "deleted",
        "replaced",
        "OK: 1 recovery",
    ):
        assert words in story
