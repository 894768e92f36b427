"""`fault.Fault`: what MS Controller blocks on is served, stays open, and tells what is wrong."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.fault_signals import (
    CLUSTER,
    CodeLevel,
    DeviceFaults,
    FaultSubject,
    NodeFaults,
    SwitchCode,
)
from mindie_ha.channels.ports import ServiceRef
from mindie_ha.channels.rates import QueryGate
from mindie_ha.kit.clock import LoopClock
from tests.channels.conftest import Dial, Serve, Serving
from tests.channels.contract import FAULT_REGISTER, FAULT_SUBSCRIBE, Client
from tests.channels.fakes import CHAT, FakeTables, eventually

OF_CHAT = FaultSubject("service", str(CHAT))
LONG = ServiceRef("mindie", "long-job-id")
CODES = (CodeLevel("80E01801", "SubHealthFault"), CodeLevel("80E18005", "SeparateNPU"))
BROKEN = NodeFaults("198.51.100.1", "node-1", "SN-1", (DeviceFaults("3", "NPU", CODES),))
PORT = SwitchCode("[0x08520003,na,L2,na]", "1", "17", "1739866717", "SubHealth")
SWITCH = NodeFaults(
    "198.51.100.2",
    "node-2",
    "",
    (DeviceFaults("-1", "Switch", (CodeLevel(PORT.code, PORT.level),), (PORT,)),),
)
NOT_HANDLED = (CodeLevel("8C084E00", "NotHandleFault"),)
HARMLESS = NodeFaults("198.51.100.3", "node-3", "", (DeviceFaults("0", "NPU", NOT_HANDLED),))


async def test_register_answers_0_and_the_stream_stays_open(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))

    assert (await client.register(FAULT_REGISTER)).code == 0
    stream = client.subscribe(FAULT_SUBSCRIBE)
    await eventually(lambda: serving.tables.joined == [(CHAT, "mindie-ms-controller", "fault")])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await stream.read()
    await eventually(lambda: serving.tables.left == [(CHAT, "mindie-ms-controller", "fault")])


async def test_stopping_ends_the_stream_with_status_ok(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register(FAULT_REGISTER)
    stream = client.subscribe(FAULT_SUBSCRIBE)
    await eventually(lambda: serving.tables.joined)

    await serving.server.stop()

    assert await stream.read() is aio.EOF
    assert await stream.code() is grpc.StatusCode.OK


async def test_register_of_config_is_not_one_of_fault(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()

    with pytest.raises(aio.AioRpcError) as refused:
        await client.subscribe(FAULT_SUBSCRIBE).read()

    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == "jobId=chat not registered, role=mindie-ms-controller"


async def test_role_is_required(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    assert (await Client(dial(serving.port), role="").register(FAULT_REGISTER)).code == 409


async def test_a_role_that_no_job_carries_is_refused(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port), role="somebody")

    assert (await client.register(FAULT_REGISTER)).code == 402
    with pytest.raises(aio.AioRpcError, match="not registered"):
        await client.subscribe(FAULT_SUBSCRIBE).read()


async def test_a_job_that_is_not_known_yet_may_register(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    assert (await Client(dial(serving.port), job_id="later", role="any").register(FAULT_REGISTER)).code == 0


async def test_a_fault_is_told_once_with_its_change_and_its_end(serve: Serve, dial: Dial) -> None:
    serving, stream = await _subscribed(serve, dial, faults=(BROKEN,))

    first = await stream.read()
    assert (first.signalType, first.jobId, bool(first.uuid)) == ("fault", "chat", True)
    (node,) = first.nodeFaultInfo
    assert (node.nodeName, node.nodeIP, node.nodeSN, node.faultLevel) == (
        "node-1",
        "198.51.100.1",
        "SN-1",
        "UnHealthy",
    )
    (device,) = node.faultDevice
    assert (device.deviceId, device.deviceType, device.faultLevel) == ("3", "NPU", "UnHealthy")
    assert list(device.faultCodes) == ["80E01801", "80E18005"]
    assert list(device.faultLevels) == ["SubHealthFault", "SeparateNPU"]

    _change(serving, (BROKEN,))  # the same again: nothing is sent
    _change(serving, (BROKEN, SWITCH))
    second = await stream.read()
    assert [each.nodeIP for each in second.nodeFaultInfo] == ["198.51.100.1", "198.51.100.2"]
    assert second.uuid != first.uuid
    (code,) = second.nodeFaultInfo[1].faultDevice[0].switchFaultInfos
    assert (code.faultCode, code.switchChipId, code.switchPortId, code.faultTime, code.faultLevel) == (
        "[0x08520003,na,L2,na]",
        "1",
        "17",
        "1739866717",
        "SubHealth",
    )

    _change(serving, ())
    last = await stream.read()
    assert (last.signalType, list(last.nodeFaultInfo)) == ("normal", [])


async def test_while_nothing_is_wrong_nothing_is_sent(serve: Serve, dial: Dial) -> None:
    serving, stream = await _subscribed(serve, dial, faults=())
    await eventually(lambda: serving.signals.asked)
    _change(serving, ())
    _change(serving, (BROKEN,))

    assert (await stream.read()).signalType == "fault"


async def test_a_pure_not_handle_fault_is_a_fault_message_that_says_healthy(serve: Serve, dial: Dial) -> None:
    _, stream = await _subscribed(serve, dial, faults=(HARMLESS,))

    message = await stream.read()

    assert message.signalType == "fault"
    assert message.nodeFaultInfo[0].faultLevel == "Healthy"


async def test_what_a_consumer_checks_holds_for_every_message(serve: Serve, dial: Dial) -> None:
    _, stream = await _subscribed(serve, dial, faults=(BROKEN, SWITCH, HARMLESS))

    message = await stream.read()

    assert re.fullmatch(r"[A-Za-z0-9_]{1,64}", message.signalType)
    for node in message.nodeFaultInfo:
        assert node.faultLevel in {"Healthy", "SubHealthy", "UnHealthy"}
        assert re.fullmatch(r"[A-Za-z0-9.-]{1,256}", node.nodeName)
    addresses = [node.nodeIP for node in message.nodeFaultInfo]
    assert addresses == sorted(addresses)


async def test_the_cluster_is_asked_with_an_empty_job_id(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    serving.signals.faults[CLUSTER] = (BROKEN,)
    client = Client(dial(serving.port), job_id="", role="platform")
    await client.register(FAULT_REGISTER)

    message = await client.subscribe(FAULT_SUBSCRIBE).read()

    assert (message.jobId, message.signalType) == ("-1", "fault")


async def test_a_query_tells_what_is_wrong_now(serve: Serve, dial: Dial) -> None:
    serving = await serve(tables=FakeTables(services={LONG}))
    client = Client(dial(serving.port), job_id=LONG.job_id)

    well = await client.query()
    serving.signals.faults[FaultSubject("service", str(LONG))] = (BROKEN,)
    broken = await client.query()

    assert (well.code, well.HasField("faultSignal")) == (200, False)
    assert (broken.code, broken.faultSignal.signalType) == (200, "fault")


async def test_a_query_for_an_unknown_job_is_answered_200_without_signal(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    result = await Client(dial(serving.port), job_id="nobody-knows-it").query()

    assert (result.code, result.HasField("faultSignal")) == (200, False)


@pytest.mark.parametrize(
    "job_id", ["short", "x" * 129, "eight\u4e2dchars"], ids=["7-chars", "129-chars", "chinese"]
)
async def test_a_query_with_a_malformed_job_id_is_an_error(serve: Serve, dial: Dial, job_id: str) -> None:
    serving = await serve()

    with pytest.raises(aio.AioRpcError, match="409"):
        await Client(dial(serving.port), job_id=job_id).query()


@pytest.mark.looptime
async def test_of_a_flood_of_queries_ten_go_fifty_wait_and_the_rest_is_turned_away() -> None:
    clock = LoopClock()
    gate = QueryGate(clock=clock)

    answers = await asyncio.gather(*(gate.admit() for _ in range(70)))

    assert answers.count(False) >= 10
    assert answers[:10] == [True] * 10
    assert clock.monotonic() <= 5.001


async def _subscribed(serve: Serve, dial: Dial, *, faults: tuple[NodeFaults, ...]) -> tuple[Serving, Any]:
    serving = await serve()
    serving.signals.faults[OF_CHAT] = faults
    client = Client(dial(serving.port))
    await client.register(FAULT_REGISTER)
    return serving, client.subscribe(FAULT_SUBSCRIBE)


def _change(serving: Serving, faults: tuple[NodeFaults, ...]) -> None:
    serving.signals.faults[OF_CHAT] = faults
    serving.streams.changed([OF_CHAT])
