"""Logging and metrics are made, not configured globally."""

from __future__ import annotations

import io
import json

import pytest
import structlog

from mindie_ha.kit.logs import make_log, silent_log
from mindie_ha.kit.metrics import PREFIX, MetricFactory, Metrics
from mindie_ha.model.ids import ObjectKey


def test_a_cluster_gets_one_json_object_a_line_with_bound_context() -> None:
    output = io.StringIO()
    log = make_log(output).bind(scope=ObjectKey("mindie", "p0"))
    with structlog.contextvars.bound_contextvars(epoch=3):
        log.info("decided", rule="job")
    line = json.loads(output.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "decided", "level": "info", "scope": "mindie/p0", "epoch": 3, "rule": "job"}


def test_lines_below_the_level_are_dropped() -> None:
    output = io.StringIO()
    make_log(output, level="warning").info("quiet")
    assert output.getvalue() == ""


def test_an_unknown_level_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="loud"):
        make_log(io.StringIO(), level="loud")


def test_a_terminal_gets_readable_lines() -> None:
    output = io.StringIO()
    make_log(output, as_json=False).info("hello", pod="a")
    assert "hello" in output.getvalue()


def test_the_silent_log_drops_everything() -> None:
    silent_log().error("nobody reads this")


def test_two_registries_do_not_know_each_other_and_names_have_the_prefix() -> None:
    one, two = Metrics(), Metrics()
    one.leader.set(1)
    assert one.factory.registry.get_sample_value("mindie_ha_leader") == 1
    assert two.factory.registry.get_sample_value("mindie_ha_leader") == 0
    assert all(family.name.startswith(PREFIX) for family in one.factory.registry.collect())


def test_rendering_is_prometheus_text() -> None:
    factory = MetricFactory()
    factory.counter("things_total", "Things").inc()
    assert b"mindie_ha_things_total 1.0" in factory.render()
