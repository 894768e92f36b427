"""What is not ours reaches the upstream and comes back byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.calls import Requests
from mindie_ha.channels.settings import UpstreamSettings
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import FAULT_REGISTER, Client, ClientInfo
from tests.channels.fakes import CHAT, eventually, table

NOT_PROTOBUF = b"\xff\xff\x00 no message at all \xfe"
ERRAND_METADATA = (("x-errand", "42"), ("x-errand-bin", b"\x00\xff"))


@dataclass
class Upstream:
    """Answers every method by the word after the last slash; notes what it was asked."""

    port: int = 0
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    metadata: list[tuple[str, str | bytes]] = field(default_factory=list)
    remaining_s: float | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]

        async def serve(requests: Requests, context: Any) -> None:
            self.metadata = list(context.invocation_metadata())
            self.remaining_s = context.time_remaining()
            await context.send_initial_metadata((("x-head", "h"),))
            async for message in requests:
                self.asked.append((details.method, message))
                await context.write(message + b"!")
            context.set_trailing_metadata((("x-tail-bin", b"\x01\xff"),))
            await self._end(method, context)

        return grpc.stream_stream_rpc_method_handler(serve)

    async def _end(self, method: str, context: Any) -> None:
        if method == "Refuse":
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "not so: ü", (("x-tail-bin", b"\x01\xff"),)
            )
        if method == "Cancelled":
            await context.abort(grpc.StatusCode.CANCELLED, "by the upstream")
        if method.startswith("Subscribe"):
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.set()


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    fake = Upstream()
    server = aio.server()
    server.add_generic_rpc_handlers((fake,))
    fake.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield fake
    await server.stop(0)


@pytest.fixture
async def channel(upstream: Upstream, serve: Serve, dial: Dial) -> Any:
    """A client's channel to us, with the upstream behind."""
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{upstream.port}"))
    return dial(serving.port)


async def test_unary(channel: Any, upstream: Upstream) -> None:
    call = channel.unary_unary("/Recover/Init")(NOT_PROTOBUF, metadata=ERRAND_METADATA, timeout=3)

    assert await call == NOT_PROTOBUF + b"!"
    assert ("x-head", "h") in tuple(await call.initial_metadata())
    assert ("x-tail-bin", b"\x01\xff") in tuple(await call.trailing_metadata())
    assert upstream.asked == [("/Recover/Init", NOT_PROTOBUF)]
    assert set(ERRAND_METADATA) <= {tuple(pair) for pair in upstream.metadata}
    assert upstream.remaining_s is not None
    assert 1 < upstream.remaining_s < 3.5  # gRPC rounds up


async def test_both_directions_stream(channel: Any) -> None:
    call = channel.stream_stream("/any.Thing/Talk")(timeout=3)
    for message in (b"", b"one", NOT_PROTOBUF):
        await call.write(message)
        assert await call.read() == message + b"!"
    await call.done_writing()

    assert await call.read() is aio.EOF
    assert await call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("method", "code", "details"),
    [
        ("/any.Thing/Refuse", grpc.StatusCode.FAILED_PRECONDITION, "not so: ü"),
        ("/any.Thing/Cancelled", grpc.StatusCode.CANCELLED, "by the upstream"),
    ],
)
async def test_error_status_text_and_trailers(
    channel: Any, method: str, code: grpc.StatusCode, details: str
) -> None:
    call = channel.unary_stream(method)(b"a", timeout=3)

    assert await call.read() == b"a!"
    with pytest.raises(aio.AioRpcError) as refused:
        await call.read()

    assert (refused.value.code(), refused.value.details()) == (code, details)
    if method.endswith("Refuse"):
        assert ("x-tail-bin", b"\x01\xff") in tuple(refused.value.trailing_metadata())


async def test_cancellation_reaches_the_upstream(channel: Any, upstream: Upstream) -> None:
    call = channel.unary_stream("/Recover/SubscribeProcessManageSignal")(b"job")
    assert await call.read() == b"job!"

    call.cancel()

    async with asyncio.timeout(2):
        await upstream.cancelled.wait()


async def test_deadline_reaches_the_upstream(channel: Any, upstream: Upstream) -> None:
    call = channel.unary_stream("/Recover/SubscribeProcessManageSignal")(b"job", timeout=2.0)
    await call.read()

    with pytest.raises(aio.AioRpcError) as late:
        await call.read()

    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with asyncio.timeout(2):
        await upstream.cancelled.wait()


async def test_foreign_job_goes_upstream_with_the_bytes_it_came_with(
    channel: Any, upstream: Upstream
) -> None:
    foreign = (
        ClientInfo(jobId="training", role="agent").SerializeToString() + b"\x7a\x01z"
    )  # an unknown field
    for method in ("/config.Config/Register", FAULT_REGISTER):
        assert await channel.unary_unary(method)(foreign, timeout=3) == foreign + b"!"

    assert upstream.asked == [("/config.Config/Register", foreign), (FAULT_REGISTER, foreign)]
    assert (await Client(channel).register()).code == 0  # ours is served here
    assert len(upstream.asked) == 2


async def test_stream_of_a_foreign_job_ends_when_the_job_becomes_ours(
    upstream: Upstream, serve: Serve, dial: Dial
) -> None:
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{upstream.port}"))
    serving.tables.services.clear()
    stream = dial(serving.port).unary_stream("/config.Config/SubscribeRankTable")(
        ClientInfo(jobId="chat").SerializeToString(), timeout=3
    )
    await stream.read()

    serving.tables.services.add(CHAT)
    serving.mailboxes.publish(table(1))

    assert await stream.read() is aio.EOF
    assert await stream.code() is grpc.StatusCode.OK
    async with asyncio.timeout(2):
        await upstream.cancelled.wait()


async def test_more_streams_than_one_connection_to_the_upstream_carries(serve: Serve, dial: Dial) -> None:
    fake = Upstream()
    server = aio.server(options=(("grpc.max_concurrent_streams", 4),))
    server.add_generic_rpc_handlers((fake,))
    fake.port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{fake.port}", streams_per_channel=3))
    channel = dial(serving.port)

    streams = [channel.unary_stream("/Recover/SubscribeX")(b"%d" % number, timeout=4) for number in range(10)]
    async with asyncio.timeout(3):
        assert [await stream.read() for stream in streams] == [b"%d!" % number for number in range(10)]

    for stream in streams:
        stream.cancel()
    await server.stop(0)


async def test_dead_upstream_is_unavailable_and_ours_is_served(serve: Serve, dial: Dial) -> None:
    serving = await serve(upstream=UpstreamSettings(address="127.0.0.1:1"))
    channel = dial(serving.port)

    with pytest.raises(aio.AioRpcError) as refused:
        await channel.unary_unary("/Recover/Init")(b"", timeout=3)

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert (await Client(channel).register()).code == 0


async def test_without_upstream_the_reason_names_method_and_setting(serve: Serve, dial: Dial) -> None:
    serving = await serve()

    with pytest.raises(aio.AioRpcError) as refused:
        await dial(serving.port).unary_unary("/job.Job/Register")(b"", timeout=3)

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "/job.Job/Register" in (refused.value.details() or "")
    assert "grpc.upstream" in (refused.value.details() or "")


async def test_closing_the_server_ends_forwarded_streams(
    upstream: Upstream, serve: Serve, dial: Dial
) -> None:
    serving = await serve(upstream=UpstreamSettings(address=f"127.0.0.1:{upstream.port}"))
    stream = dial(serving.port).unary_stream("/Recover/SubscribeX")(b"a", timeout=4)
    await stream.read()

    async with asyncio.timeout(2):
        await serving.server.stop()

    with pytest.raises(aio.AioRpcError):
        await stream.read()
    await eventually(upstream.cancelled.is_set)
