"""The bench measures what it says, on the smallest sizes. No time is judged: that is for people."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tools.bench.fleets import clone, fleet, living_service
from tools.bench.reports import print_tables
from tools.bench.samples import summary


@pytest.mark.timeout(180)  # four processes are started; a busy machine needs long for that
def test_every_figure_is_measured_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--runs", "2", "--services", "1,3", "--decision-runs", "4", "--startup-runs", "1")
    command = [
        sys.executable,
        "-m",
        "tools.bench",
        *small,
        "--pods",
        "40",
        "--nodes",
        "20",
        "--reports",
        "60",
        "-o",
        "json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    figures = found["recoveries"]["figures"]
    assert {figure["runs"] for figure in figures.values()} == {2}
    assert 0 < figures["isolate_write"]["p50_ms"] < figures["deletion"]["p50_ms"]
    assert figures["floor"]["p50_to_floor"] == 1
    assert [cost["services"] for cost in found["decisions"]] == [1, 3]
    assert found["startup"]["pods"] == 40
    assert (found["reports"]["count"], found["reports"]["touched"]) == (60, 1)
    assert found["machine"]["cores"] > 0
    print_tables(found)
    assert "fault written" in capsys.readouterr().out


async def test_clones_share_nothing_but_the_size() -> None:
    service = await living_service()
    first, second = clone(service, 1), clone(service, 2)
    assert {len(objects) for objects in (first["Pod"], second["Pod"])} == {10}
    uids = [one["metadata"]["uid"] for found in (first, second) for one in found["Pod"]]
    assert len(set(uids)) == len(uids)
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in first["Pod"]} == {
        one["metadata"]["uid"] for one in first["AscendJob"]
    }
    assert not {one["metadata"]["name"] for one in first["Node"]} & {
        one["metadata"]["name"] for one in second["Node"]
    }


async def test_a_fleet_has_the_size_that_was_asked_for() -> None:
    found = fleet(await living_service(), pods=30, nodes=50)
    reports = [one for one in found["ConfigMap"] if "deviceinfo" in one["metadata"]["name"]]
    assert (len(found["Pod"]), len(found["Node"]), len(reports)) == (30, 50, 50)


def test_percentiles_are_measured_values() -> None:
    found = summary([index / 1000 for index in range(1, 51)])
    assert (found.runs, found.p50_ms, found.p99_ms, found.max_ms) == (50, 25.0, 50.0, 50.0)
    with pytest.raises(ValueError, match="nothing was measured"):
        summary([])
