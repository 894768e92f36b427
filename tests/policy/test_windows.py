"""When a maintenance window is open, and what it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from mindie_ha.model.recoveries import Phase
from mindie_ha.model.settings import MaintenanceSettings, Settings, Window
from mindie_ha.policy import windows
from tests.policy.worlds import service

SATURDAY = Window(cron="0 2 * * 6", duration_s=7200)
LONG = Window(cron="0 22 * * *", duration_s=6 * 3600)
ALWAYS = Window(cron="* * * * *", duration_s=120)
BERLIN = Window(cron="30 1 * * *", duration_s=3600, time_zone="Europe/Berlin")


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC if zone == "UTC" else ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("window", "now", "zone", "end"),
    [
        pytest.param(SATURDAY, "2026-11-28T01:59:59", "UTC", None, id="just-before"),
        pytest.param(SATURDAY, "2026-11-28T02:00:00", "UTC", "2026-11-28T04:00:00", id="first-moment"),
        pytest.param(SATURDAY, "2026-11-28T03:59:59", "UTC", "2026-11-28T04:00:00", id="last-moment"),
        pytest.param(SATURDAY, "2026-11-28T04:00:00", "UTC", None, id="over"),
        pytest.param(SATURDAY, "2026-11-27T03:00:00", "UTC", None, id="another-day"),
        pytest.param(LONG, "2026-12-01T03:00:00", "UTC", "2026-12-01T04:00:00", id="across-midnight"),
        pytest.param(BERLIN, "2026-06-10T02:00:00", "Europe/Berlin", "2026-06-10T02:30:00", id="zone"),
        pytest.param(BERLIN, "2026-06-10T02:00:00", "UTC", None, id="not-utc"),
        pytest.param(BERLIN, "2026-03-29T03:15:00", "Europe/Berlin", "2026-03-29T03:30:00", id="spring"),
    ],
)
def test_a_window_is_open_for_its_duration(window: Window, now: str, zone: str, end: str | None) -> None:
    assert windows.ends_s(window, now_s=at(now, zone)) == (at(end, zone) if end else None)


def test_of_overlapping_windows_the_first_end_is_looked_at() -> None:
    other = Window(cron="30 2 * * *", duration_s=7200)
    hold = windows.judge((other, SATURDAY), now_s=at("2026-11-28T03:00:00"))
    assert (hold.condition, hold.wake_at_s) == ("HeldByMaintenance", at("2026-11-28T04:00:00"))


def test_a_window_is_open_once_in_the_night_in_which_clocks_go_back() -> None:
    window = Window(cron="30 2 * * *", duration_s=3600, time_zone="Europe/Berlin")
    midnight_s = datetime(2027, 10, 31, tzinfo=UTC).timestamp()
    held = [windows.judge([window], now_s=midnight_s + 60 * minute).on for minute in range(240)]
    assert sum(held) == 60
    assert held[30:90] == [True] * 60


def test_without_windows_nothing_is_held() -> None:
    assert not windows.judge((), now_s=0.0).on


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"cron": "x"}, id="no-cron"),
        pytest.param({"cron": "61 * * * *"}, id="minute"),
        pytest.param({"cron": "0 2 * * *", "duration_s": 0}, id="no-time"),
        pytest.param({"cron": "0 2 * * *", "duration_s": 1e9}, id="for-ever"),
        pytest.param({"cron": "0 2 * * *", "time_zone": "Mars/Olympus"}, id="zone"),
        pytest.param({"cron": "0 2 * * *", "time_zone": "../etc/passwd"}, id="path"),
    ],
)
def test_what_is_no_window_is_refused_at_start(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Window.model_validate({"duration_s": 60, **wrong})


def test_inside_a_window_a_fault_is_isolated_and_nothing_deleted() -> None:
    world = service(settings=Settings(maintenance=MaintenanceSettings(windows=(ALWAYS,))))
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=60.0)
    recovery = world.job("p0").ledger.recovery
    assert recovery is not None
    assert (recovery.phase, recovery.condition) == (Phase.BACKOFF, "HeldByMaintenance")
    assert not world.deleted
    world.settings = Settings()
    world.settle(until=lambda: world.closed("p0"))
