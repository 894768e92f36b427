"""`PubFault.SendPublicFault`, called by a client that knows only the field numbers."""

from __future__ import annotations

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.ports import ReportAnswer, ReportCode
from mindie_ha.channels.settings import UpstreamSettings
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import PUBLIC_SEND, Client, PublicFaultRequest

MESSAGE = {
    "id": "message-0001",
    "timestamp": 1_739_866_717_000,
    "version": "1.0",
    "resource": "CCAE",
    "faults": [
        {
            "faultId": "fault-0001",
            "faultType": "NPU",
            "faultCode": "220001001",
            "faultTime": 1_739_866_717_001,
            "assertion": "occur",
            "faultLocation": [{"key": "npuIp", "value": "198.51.100.7"}],
            "influence": [{"nodeName": "node-1", "nodeSN": "SN-1", "deviceIds": [0, 31]}],
            "description": "a chip is broken",
        }
    ],
}


async def test_every_field_arrives_by_its_name(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    answer = await Client(dial(serving.port)).report(PublicFaultRequest(**MESSAGE))

    assert answer.code == 0
    ((body, entry),) = serving.reports.taken
    (fault,) = MESSAGE["faults"]
    assert entry == "grpc"
    assert body == {**MESSAGE, "faults": [{**fault, "faultLocation": {"npuIp": "198.51.100.7"}}]}


@pytest.mark.parametrize("code", [ReportCode.INVALID, ReportCode.TOO_MANY, ReportCode.NOT_KEPT])
async def test_a_refusal_is_in_the_body_and_the_status_stays_ok(
    serve: Serve, dial: Dial, code: ReportCode
) -> None:
    serving = await serve()
    serving.reports.answer = ReportAnswer(code, "because")

    answer = await Client(dial(serving.port)).report(PublicFaultRequest(**MESSAGE))

    assert (answer.code, answer.info) == (int(code), "because")


async def test_with_an_upstream_it_is_told_too_and_its_answer_counts(serve: Serve, dial: Dial) -> None:
    upstream = await serve()
    upstream.reports.answer = ReportAnswer(ReportCode.OK, "told by the upstream")
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{upstream.port}"))

    answer = await Client(dial(serving.port)).report(PublicFaultRequest(**MESSAGE))

    assert (answer.code, answer.info) == (0, "told by the upstream")
    assert len(serving.reports.taken) == len(upstream.reports.taken) == 1


async def test_what_we_refuse_is_not_passed_on(serve: Serve, dial: Dial) -> None:
    upstream = await serve()
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{upstream.port}"))
    serving.reports.answer = ReportAnswer(ReportCode.INVALID, "because")

    await Client(dial(serving.port)).report(PublicFaultRequest(**MESSAGE))

    assert upstream.reports.taken == []


async def test_bytes_that_are_no_message_end_the_call_with_an_error(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    call = dial(serving.port).unary_unary(PUBLIC_SEND)

    with pytest.raises(aio.AioRpcError) as refused:
        await call(b"\xff\xff\xff", timeout=3)

    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert "PublicFaultRequest" in (refused.value.details() or "")
