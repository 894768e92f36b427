"""`POST /v1/faults`: the answers of the wire, as HTTP clients expect them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from mindie_ha.channels.ports import ReportAnswer, ReportCode
from mindie_ha.engine.records import Recorder
from mindie_ha.kit.clock import LoopClock
from mindie_ha.web import adoptions, nodes, pauses, requesting, workloads
from mindie_ha.web.access import Access, AccessRules, Judge
from mindie_ha.web.api import Health, Peers, Sources, TableSource, make_app
from mindie_ha.web.explanations import Explainer
from mindie_ha.web.fault_reports import FleetReporter
from mindie_ha.web.reports import Reporter
from tests.channels.fakes import FakeReports
from tests.intake.public_examples import body

RUBBISH = [b"", b"{", b"[]", b"\xff", b"nul"]
TAKEN = ReportAnswer(ReportCode.OK, "taken", accepted=1, left_out=("faults[1]: bad",))
ANSWERS = [
    pytest.param(TAKEN, 200, id="taken"),
    pytest.param(ReportAnswer(ReportCode.INVALID, "id: missing"), 400, id="invalid"),
    pytest.param(ReportAnswer(ReportCode.TOO_MANY, "too often"), 429, id="too-many"),
    pytest.param(ReportAnswer(ReportCode.NOT_KEPT, "no leader"), 503, id="not-kept"),
]


async def _post(reports: FakeReports, **sent: Any) -> tuple[int, dict[str, Any]]:
    sources = Sources(
        reports=cast("Reporter", None),  # not asked for by this route
        tables=cast("TableSource", None),
        recorder=Recorder(),
        registry=CollectorRegistry(),
        health=lambda: Health(live=True, ready=True),
        faults=reports,
        fleet=cast("FleetReporter", None),
        desk=cast("nodes.Desk", None),
        rearm=cast("workloads.Desk", None),
        adoptions=cast("adoptions.Desk", None),
        requests=cast("requesting.Desk", None),
        pauses=cast("pauses.Desk", None),
        explainer=cast("Explainer", None),
        access=Access(AccessRules(), judge=cast("Judge", None), clock=LoopClock()),
        peers=cast("Peers", None),
    )
    async with TestClient(TestServer(make_app(sources, max_body_bytes=65536))) as client:
        response = await client.post("/v1/faults", **sent)
        return response.status, await response.json()


@pytest.mark.parametrize(("answer", "status"), ANSWERS)
async def test_the_answer_is_in_the_body_and_the_status_agrees(answer: ReportAnswer, status: int) -> None:
    reports = FakeReports(answer)

    found, told = await _post(reports, json=body())

    assert found == status
    assert (told["code"], told["info"], told["accepted"]) == (answer.code, answer.info, answer.accepted)
    assert told["left_out"] == list(answer.left_out)
    assert ("error" in told) == (status != 200)
    assert reports.taken == [(body(), "http")]


@pytest.mark.parametrize("sent", RUBBISH, ids=repr)
async def test_what_is_no_json_object_is_invalid(sent: bytes) -> None:
    reports = FakeReports()

    status, told = await _post(reports, data=sent)

    assert (status, told["code"]) == (400, 409)
    assert told["error"]["where"] == "/v1/faults"
    assert reports.taken == []


async def test_a_body_that_is_too_large_is_refused() -> None:
    status, told = await _post(FakeReports(), data=b" " * 65537)

    assert status == 413
    assert told["error"]["what"]
