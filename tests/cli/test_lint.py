"""`lint`: what it prints and how it exits."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.test_looking_commands import call

SAMPLES = Path("tests/data/faults")
VALID = str(SAMPLES / "cm_deviceinfo_a3_two_faults_valid_checkcode.yaml")
WRONG = str(SAMPLES / "cm_nodeinfo_cpu_separate_checkcode_mismatch.yaml")


def test_a_good_object_exits_0_and_is_explained() -> None:
    code, out, err = call("lint", VALID)
    assert (code, err) == (0, "")
    assert "ok (device report, CheckCode fits)" in out
    assert "ChipUnhealthy: Ascend910-4" in out


def test_a_finding_exits_1_whatever_else_is_well() -> None:
    code, out, err = call("lint", VALID, WRONG)
    assert (code, err) == (1, "")
    assert "wrong (node report, CheckCode does not fit)" in out
    code, out, _ = call("lint", WRONG, "-o", "json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    (one,) = found["objects"]
    assert (one["verdict"], one["check_code"]) == ("wrong", "does not fit")
    assert {finding["code"] for finding in one["findings"]} >= {"check-code"}


@pytest.mark.parametrize("text", [None, "a: [", "\x00"], ids=["absent", "no-yaml", "binary"])
def test_a_file_that_cannot_be_read_is_one_line_and_exit_2(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "x.yaml"
    if text is not None:
        path.write_text(text)
    code, out, err = call("lint", str(path))
    assert (code, out) == (2, "")
    assert str(path) in err
    assert err.count("\n") == 1


def test_folders_and_stdin_are_read_and_other_files_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.yaml").write_text(Path(VALID).read_text())
    (tmp_path / "b.yml").write_text("a: [")
    (tmp_path / "c.txt").write_text("a: [")
    code, out, err = call("lint", str(tmp_path / "below"))
    assert (code, err) == (0, "")
    assert "a.yaml" in out
    code, out, err = call("lint", str(tmp_path), WRONG)
    assert code == 2
    assert "wrong (node report" in out
    assert "b.yml" in err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(WRONG).read_bytes())))
    assert call("lint", "-")[0] == 1


def test_a_job_finding_has_place_reason_fix_severity_and_docs(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(Path("tests/data/jobs/clean_mindie_coordinator.yaml").read_text().replace('"on"', "on"))
    code, out, _ = call("lint", str(path), "-o", "json")
    (job,) = json.loads(out)["objects"]
    (finding,) = job["findings"]
    assert (code, job["document"], job["file"]) == (1, 1, str(path))
    assert finding["where"] == "metadata.labels.pod-rescheduling"
    assert (finding["line"], finding["severity"], finding["docs"]) == (
        12,
        "error",
        "docs/lint.md#pod-rescheduling-value",
    )
    assert finding["why"]
    assert finding["advice"]
