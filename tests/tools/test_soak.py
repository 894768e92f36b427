"""The simulation itself: it repeats exactly, sees broken controllers, and says how to play one again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.soak import runs
from tools.soak.__main__ import main
from tools.soak.mutations import MUTATIONS
from tools.soak.runs import Run

ROOT = Path(__file__).resolve().parents[2]
QUIET_SEED = 4  # one service, short
PINNED = {  # a seed whose history shows it early; the full proof is `python -m tools.soak --mutations`
    "forgetful-budget": 2,
    "no-fence": 0,
    "no-write-ahead": 0,
    "short-pause": 40,
    "stale-delete": 0,
    "unchecked-table": 2,
}


def elsewhere(*words: str, hash_seed: int) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "tools.soak", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_seed_is_the_same_history_in_every_process() -> None:
    found = [
        elsewhere("--seed", str(QUIET_SEED), "--steps", "6", "-o", "json", hash_seed=number)
        for number in (1, 2)
    ]
    first, second = (json.loads(one.stdout)["histories"][0] for one in found)
    assert first["ok"], first
    assert (first["digest"], first["turns"]) == (second["digest"], second["turns"])


def test_another_seed_is_another_history() -> None:
    first, second = (Run(first=seed, count=1, steps=1).one(seed) for seed in (4, 5))
    assert first.digest != second.digest


def test_more_histories_than_a_process_plays_go_on_in_fresh_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "HISTORIES_A_PROCESS", 1)
    run = Run(first=QUIET_SEED, count=3, steps=0, jobs=2)
    assert [one.seed for one in runs.results(run)] == list(range(QUIET_SEED, QUIET_SEED + 3))


def test_every_mutation_has_a_pinned_seed() -> None:
    assert set(PINNED) == set(MUTATIONS)


@pytest.mark.parametrize("name", sorted(PINNED))
def test_a_broken_controller_is_seen(name: str) -> None:
    run = Run(first=PINNED[name], count=1, mutation=name)
    assert run.one(run.first).violations


def test_a_broken_history_is_printed_as_the_command_that_plays_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--mutation", "no-write-ahead", "--seed", str(PINNED["no-write-ahead"])]
    assert main(words) == 1
    told = capsys.readouterr()
    assert f"again: python -m tools.soak --seed {words[-1]} --mutation no-write-ahead" in told.out
    assert "no recorded target" in told.err


def test_the_mutations_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == sorted(MUTATIONS)


@pytest.mark.parametrize(
    "words", [["--seeds", "0"], ["--seed", "-1"], ["--steps", "-1"], ["--mutation", "unheard-of"]]
)
def test_bad_usage_is_one_clear_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err
