"""`explain`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.test_looking_commands import call

JOB = "tests/data/jobs/clean_pytorch_process.yaml"


def test_text_json_and_yaml_say_the_same() -> None:
    code, out, err = call("explain", JOB)
    assert (code, err) == (0, "")
    assert "AscendJob training/pretrain: training, pytorch, 4 pods, 32 NPUs" in out
    assert "    HIGH_AVAILABILITY=recover,retry" in out
    as_json = json.loads(call("explain", JOB, "-o", "json")[1])
    assert yaml.safe_load(call("explain", JOB, "-o", "yaml")[1]) == as_json
    (job,) = as_json["jobs"]
    assert job["ladder"][-1]["name"] == "park"
    assert job["environment"][0]["variables"]["RANK"] == "0"
    assert {"name", "seconds", "source", "meaning"} == set(job["timeouts"][0])


def test_times_follow_the_controllers_settings(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("phases: {recreate_s: 77}")
    assert "77 s  recreate_s" in call("explain", JOB, "--config", str(config))[1]


@pytest.mark.parametrize(
    "text", ["kind: Secret", "a: [", "kind: Deployment"], ids=["no-job", "no-yaml", "other"]
)
def test_what_holds_no_job_is_one_line_and_exit_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    code, out, err = call("explain", str(path))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
