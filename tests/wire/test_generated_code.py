"""The committed generated code is what the protos say, and the protos are what the wire carries."""

from __future__ import annotations

import grpc
import grpc.aio
import pytest
from google.protobuf.message import Message

from mindie_ha.wire import config_pb2, config_pb2_grpc, fault_pb2
from tools import generate_wire


def test_generated_code_is_in_sync_with_the_protos() -> None:
    assert generate_wire.stale() == ()


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        pytest.param(config_pb2.ClientInfo(jobId="j", role="r"), b"\x0a\x01j\x12\x01r", id="ClientInfo"),
        pytest.param(config_pb2.Status(code=3, info="i"), b"\x08\x03\x12\x01i", id="Status"),
        pytest.param(
            config_pb2.RankTableStream(jobId="j", rankTable="{}"),
            b"\x0a\x01j\x12\x02{}",
            id="RankTableStream",
        ),
        pytest.param(
            fault_pb2.FaultMsgSignal(
                uuid="u", signalType="fault", nodeFaultInfo=[fault_pb2.NodeFaultInfo(nodeIP="1")]
            ),
            b"\x0a\x01u\x1a\x05fault\x22\x03\x12\x011",
            id="FaultMsgSignal",
        ),
        pytest.param(
            fault_pb2.DeviceFaultInfo(
                deviceId="0", faultLevels=["x"], switchFaultInfos=[fault_pb2.SwitchFaultInfo(faultLevel="y")]
            ),
            b"\x0a\x010\x3a\x03\x2a\x01y\x42\x01x",
            id="DeviceFaultInfo",
        ),
    ],
)
def test_messages_have_the_field_numbers_of_the_contract(message: Message, encoded: bytes) -> None:
    assert message.SerializeToString(deterministic=True) == encoded


class Echo(config_pb2_grpc.ConfigServicer):
    """Answers with what it was asked."""

    async def Register(  # noqa: N802 - the name on the wire
        self, request: config_pb2.ClientInfo, context: grpc.aio.ServicerContext
    ) -> config_pb2.Status:
        return config_pb2.Status(info=f"{request.jobId}/{request.role}")


async def test_method_names_are_those_on_the_wire() -> None:
    server = grpc.aio.server()
    config_pb2_grpc.add_ConfigServicer_to_server(Echo(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/config.Config/Register")
        assert await call(b"\x0a\x01j\x12\x01r", timeout=3) == b"\x12\x03j/r"
    await server.stop(None)
