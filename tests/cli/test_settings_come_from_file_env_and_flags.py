"""A YAML file, then the environment, then flags; mistakes are explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindie_ha.cli.configs import load_settings
from mindie_ha.model.errors import SettingsError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mindie-ha.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_need_no_file() -> None:
    assert load_settings().phases.settle_s == 30


def test_flags_win_over_environment_and_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "phases: {settle_s: 11, gone_s: 12, table_s: 13}\n")
    monkeypatch.setenv("MINDIE_HA_PHASES__GONE_S", "22")
    monkeypatch.setenv("MINDIE_HA_PHASES__TABLE_S", "23")
    phases = load_settings(path, flags={"phases": {"table_s": 33}}).phases
    assert (phases.settle_s, phases.gone_s, phases.table_s) == (11, 22, 33)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("phases: {setle_s: 1}", "did you mean settle_s?", id="misspelt-key"),
        pytest.param("fases: {}", "did you mean phases?", id="misspelt-section"),
        pytest.param("phases: {settle_s: -1}", "phases.settle_s: Input should be greater than 0", id="bound"),
        pytest.param("phases: {settle_s: soon}", "valid number", id="type"),
        pytest.param("phases: {settle_s: 4000}", "must not be above phases.startup_s", id="across-fields"),
        pytest.param("- a list", "must be a mapping", id="not-a-mapping"),
        pytest.param("phases: {settle_s: [", "is not YAML", id="syntax"),
    ],
)
def test_a_mistake_is_explained_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(write(tmp_path, text))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_in_the_environment_that_is_no_json_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDIE_HA_TABLE__PUSH_TARGETS", "http://host/path")
    with pytest.raises(SettingsError, match=r"environment: .*JSON.*for example"):
        load_settings()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.yaml: cannot be read"):
        load_settings(tmp_path / "absent.yaml")
