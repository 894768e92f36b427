"""A missing permission is named once, with what follows, until it is there."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.permissions import SOON_S, Permissions, needed
from mindie_ha.cluster.transports import Gate, Reply
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import make_log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.tasks import OnEnd, Supervisor
from mindie_ha.model.settings import Settings


class Reviewer:
    """Answers access reviews: everything is allowed but `denied`; `status` other than 201 refuses to say."""

    def __init__(self) -> None:
        self.denied: set[tuple[str, str]] = set()
        self.status = 201
        self.asked = 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
        gate: Gate | None = None,
    ) -> Reply:
        self.asked += 1
        wanted = orjson.loads(body or b"{}")["spec"]["resourceAttributes"]
        allowed = (wanted["verb"], wanted["resource"]) not in self.denied
        return Reply(self.status, orjson.dumps({"status": {"allowed": allowed}}), {})

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError


class Watch:
    """Permissions under watch, and what was said."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.reviewer, self.said = Reviewer(), io.StringIO()
        self.clock, self.metrics = LoopClock(), Metrics()
        log = make_log(self.said, as_json=True)
        needs = needed(settings or Settings())
        client = Client(self.reviewer)
        self.permissions = Permissions(needs, client=client, clock=self.clock, log=log, metrics=self.metrics)
        self.supervisor = Supervisor(clock=self.clock, entropy=Entropy(1), log=log, metrics=self.metrics)

    def start(self) -> None:
        self.supervisor.start("permissions", self.permissions.run, on_end=OnEnd.FAIL)

    def events(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.said.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.mark.looptime
async def test_each_missing_permission_is_named_once_with_what_follows() -> None:
    watch = Watch()
    watch.reviewer.denied = {("delete", "pods")}
    watch.start()
    await watch.clock.sleep(3 * SOON_S)
    (line,) = watch.events("permission is missing")
    assert (line["verb"], line["resource"]) == ("delete", "pods")
    assert "stays in `stop`" in line["without_it"]
    assert [str(each) for each in watch.permissions.missing] == ["delete pods"]
    gauge = watch.metrics.permission_missing
    assert gauge.labels("delete", "pods")._value.get() == 1
    assert gauge.labels("list", "pods")._value.get() == 0
    await watch.supervisor.close()


@pytest.mark.looptime
async def test_a_permission_that_is_granted_later_is_noticed_and_then_nothing_is_asked() -> None:
    watch = Watch()
    watch.reviewer.denied = {("delete", "pods")}
    watch.start()
    await watch.clock.sleep(1)
    watch.reviewer.denied = set()
    await watch.clock.sleep(SOON_S)
    assert len(watch.events("permission is there again")) == 1
    assert watch.permissions.missing == ()
    asked = watch.reviewer.asked
    await watch.clock.sleep(3600)
    assert watch.reviewer.asked == asked
    await watch.supervisor.close()


@pytest.mark.looptime
async def test_a_server_that_does_not_say_is_asked_again_and_nothing_is_claimed() -> None:
    watch = Watch()
    watch.reviewer.status = 403
    watch.start()
    await watch.clock.sleep(1)
    asked = watch.reviewer.asked
    await watch.clock.sleep(2 * SOON_S)
    assert watch.reviewer.asked > asked
    assert watch.events("permission is missing") == []
    await watch.supervisor.close()


def test_a_dry_run_needs_no_write() -> None:
    assert {each.verb for each in needed(Settings(dry_run=True))} == {"list", "watch"}
