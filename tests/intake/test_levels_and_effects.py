"""One scale of levels, and the one table that says what each does."""

from __future__ import annotations

import pytest

from mindie_ha.model.levels import Family, Level, parse_level, worst
from mindie_ha.model.workloads import Role
from mindie_ha.policy.effects import (
    EFFECTS,
    Effect,
    Placement,
    Subject,
    row_of,
    strategy_recovers,
    subject_of,
)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        pytest.param("SeparateNPU", Level.SEPARATE, id="chip"),
        pytest.param("Separate", Level.SEPARATE, id="047-switch"),
        pytest.param("SeparateFault", Level.SEPARATE, id="047-node"),
        pytest.param("PreSeparateFault", Level.PRE_SEPARATE, id="047-node-pre"),
        pytest.param("PreSeparateNPU", Level.PRE_SEPARATE, id="047-chip-pre"),
        pytest.param("ResetFault", Level.SEPARATE, id="old-switch-level"),
        pytest.param("NotHandle", Level.NOT_HANDLE, id="switch-not-handle"),
        pytest.param(" RestartRequest ", Level.RESTART_REQUEST, id="blanks"),
        pytest.param("separatenpu", Level.UNKNOWN, id="047-unknown-text"),
        pytest.param("Unexplained", Level.UNKNOWN, id="our-own-word"),
        pytest.param("", Level.UNKNOWN, id="empty"),
    ],
)
def test_every_writers_spelling_is_one_level(text: str, level: Level) -> None:
    assert parse_level(text) is level


def test_the_writers_order_puts_pre_separate_above_the_restart_levels() -> None:
    named = ["NormalNPU", "NotHandleFault", "SubHealthFault", "RestartRequest", "RestartBusiness"]
    named += ["FreeRestartNPU", "RestartNPU", "PreSeparateNPU", "SeparateNPU", "ManuallySeparateNPU"]
    levels = [Level(text) for text in named]
    ranks = [level.rank for level in levels]
    assert ranks == sorted(set(ranks))
    assert worst(()) is Level.NORMAL


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("level", Level)
def test_every_level_of_every_family_has_an_effect_on_everybody(family: Family, level: Level) -> None:
    row = row_of(family, level)
    assert all(row.on(subject) in Effect for subject in Subject)


@pytest.mark.parametrize("level", Level)
def test_a_fault_of_the_link_never_deletes(level: Level) -> None:
    row = row_of(Family.NETWORK, level)
    assert {row.on(subject) for subject in Subject} == {Effect.RECORD}


@pytest.mark.parametrize("family", [Family.CHIP, Family.PUBLIC, Family.SWITCH, Family.NODE])
def test_pre_separate_disturbs_nobody_and_closes_the_place(family: Family) -> None:
    row = row_of(family, Level.PRE_SEPARATE)
    assert {row.on(subject) for subject in Subject} == {Effect.RECORD}
    assert row.placement in (Placement.CARD_CLOSED_IDLE, Placement.NODE_CLOSED_IDLE)


@pytest.mark.parametrize("family", [Family.CHIP, Family.PUBLIC, Family.SWITCH, Family.NODE])
def test_an_undefined_level_keeps_new_work_away_and_restarts_nothing_by_itself(family: Family) -> None:
    """047."""
    row = row_of(family, Level.UNKNOWN)
    assert row.placement is not Placement.OPEN
    assert {row.inference, row.training} == {Effect.LISTED}


def test_only_a_server_is_silent_on_restart_request() -> None:
    row = row_of(Family.CHIP, Level.RESTART_REQUEST)
    assert (row.inference, row.training) == (Effect.WINDOW, Effect.ACT)


def test_a_pod_of_the_ms_holds_no_card() -> None:
    for family in (Family.CHIP, Family.PUBLIC, Family.NETWORK):
        assert all(row.ms is Effect.RECORD for row in EFFECTS[family].values())


@pytest.mark.parametrize(
    ("strategy", "recovers"),
    [
        ("", False),
        ("ignore", False),
        ("graceExit", True),
        ("forceExit", True),
        ("hotSwitch", False),
        ("x", False),
    ],
)
def test_sub_health_strategies(strategy: str, recovers: bool) -> None:
    """141."""
    assert strategy_recovers(strategy) is recovers


def test_roles_read_their_column() -> None:
    assert [subject_of(role) for role in (Role.SERVER, Role.COORDINATOR, Role.TRAINING)] == [
        Subject.INFERENCE,
        Subject.MS,
        Subject.TRAINING,
    ]
