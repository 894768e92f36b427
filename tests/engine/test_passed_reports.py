"""A public fault that came over HTTP goes on to the upstream after we have it."""

from __future__ import annotations

import pytest

from mindie_ha.channels.errors import UpstreamSilent
from mindie_ha.channels.ports import ReportAnswer, ReportCode
from mindie_ha.engine.passed_reports import PassedReports, to_wire
from mindie_ha.wire import pubfault_pb2
from tests.channels.fakes import FakeReports
from tests.intake.public_examples import body

OK = ReportAnswer(ReportCode.OK, "received", accepted=1)


class FakeUpstream:
    """Answers as told, or not at all."""

    def __init__(
        self, code: int = 0, info: str = "", *, silent: bool = False, configured: bool = True
    ) -> None:
        self.upstream_configured = configured
        self._answer = pubfault_pb2.RespStatus(code=code, info=info).SerializeToString()
        self._silent = silent
        self.told: list[bytes] = []

    async def tell_upstream(self, method: str, request: bytes) -> bytes:
        assert method == "/PubFault/SendPublicFault"
        self.told.append(request)
        if self._silent:
            raise UpstreamSilent("UNAVAILABLE connection refused")
        return self._answer


ANSWERS = [
    pytest.param(OK, FakeUpstream(), ReportCode.OK, "received", 1, id="taken by both"),
    pytest.param(OK, FakeUpstream(configured=False), ReportCode.OK, "received", 0, id="nobody else"),
    pytest.param(OK, FakeUpstream(silent=True), ReportCode.NOT_KEPT, "connection refused", 1, id="silent"),
    pytest.param(OK, FakeUpstream(501, "full"), ReportCode.NOT_KEPT, "said 501: full", 1, id="not kept"),
    pytest.param(OK, FakeUpstream(409, "bad"), ReportCode.INVALID, "said 409: bad", 1, id="invalid there"),
    pytest.param(OK, FakeUpstream(410, "slow"), ReportCode.TOO_MANY, "said 410: slow", 1, id="too many"),
    pytest.param(
        ReportAnswer(ReportCode.INVALID, "id: missing"), FakeUpstream(), ReportCode.INVALID, "id: missing", 0,
        id="refused here is not passed on",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "upstream", "code", "words", "told"), ANSWERS)
async def test_answers(
    ours: ReportAnswer, upstream: FakeUpstream, code: ReportCode, words: str, told: int
) -> None:
    upstream.told.clear()
    answer = await PassedReports(FakeReports(ours), upstream).report(body(), entry="http")
    assert (answer.code, len(upstream.told)) == (code, told)
    assert words in answer.info


def test_the_message_of_the_wire_holds_what_was_said() -> None:
    said = body()
    message = to_wire(said)
    assert (message.id, message.timestamp, message.resource) == (
        said["id"],
        said["timestamp"],
        said["resource"],
    )
    assert len(message.faults) == len(said["faults"])
    assert message.faults[0].influence[0].nodeName == said["faults"][0]["influence"][0]["nodeName"]


@pytest.mark.parametrize(
    "fault",
    [
        7,
        None,
        [],
        {"faultTime": "soon"},
        {"influence": 3},
        {"faultTime": 1 << 80},
        {"influence": [{"deviceIds": ["x"]}]},
    ],
)
def test_what_does_not_fit_the_wire_is_left_out_alone(fault: object) -> None:
    said = body()
    said["faults"] = [fault, *said["faults"]]
    assert len(to_wire(said).faults) == 1
