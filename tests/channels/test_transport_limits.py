"""The transport facts of the wire: limits, rates, pings, hostile input, TLS."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.calls import peer_address
from mindie_ha.channels.errors import ServerNotStarted
from mindie_ha.channels.grpc_server import server_options
from mindie_ha.channels.ports import ServiceRef, Unresolved
from mindie_ha.channels.rates import TokenBucket, UnaryRates
from mindie_ha.channels.settings import ServerSettings, TlsFiles
from mindie_ha.kit.clock import LoopClock
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import CONFIG_REGISTER, CONFIG_SUBSCRIBE, Client
from tests.channels.fakes import FakeTables, table

PING, GOAWAY, SETTINGS = 6, 7, 4


def settings(**changes: Any) -> ServerSettings:
    return ServerSettings(listen="127.0.0.1:0", stop_grace_s=0.1, **changes)


def test_defaults_are_those_of_the_contract() -> None:
    assert dict(server_options(ServerSettings())) == {
        "grpc.max_receive_message_length": 4 * 1024 * 1024,
        "grpc.max_send_message_length": 8 * 1024 * 1024,
        "grpc.max_concurrent_streams": 64,
        "grpc.max_allowed_incoming_connections": 1024,
        "grpc.max_connection_idle_ms": 300_000,
        "grpc.server_handshake_timeout_ms": 20_000,
        "grpc.keepalive_time_ms": 60_000,
        "grpc.keepalive_timeout_ms": 5_000,
        "grpc.keepalive_permit_without_calls": 1,
        "grpc.http2.min_ping_interval_without_data_ms": 3_000,
        "grpc.so_reuseport": 0,
        "grpc.http2.bdp_probe": 0,
    }


async def test_too_many_unary_calls_are_refused_with_the_text_of_the_wire(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=settings(unary_rate_per_s=2.0))
    client = Client(dial(serving.port))
    await client.register()
    await client.register()

    with pytest.raises(aio.AioRpcError) as refused:
        await client.register()

    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == f"qps exceeded, method={CONFIG_REGISTER}"
    serving.mailboxes.publish(table(1))
    assert (await client.subscribe().read()).rankTable == table(1).text  # streams are not limited


@pytest.mark.looptime
async def test_bucket_fills_again_and_health_has_its_own() -> None:
    clock = LoopClock()
    rates = UnaryRates(unary_per_s=1.0, health_per_s=2.0, clock=clock)
    assert [rates.allow("/a/B") for _ in range(2)] == [True, False]
    assert [rates.allow("/Recover/HealthCheck") for _ in range(3)] == [True, True, False]

    await clock.sleep(1.0)

    assert [rates.allow("/a/B") for _ in range(2)] == [True, False]
    bucket = TokenBucket(rate_per_s=5.0, clock=clock)
    await clock.sleep(1000.0)
    assert [bucket.allow() for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.parametrize("method", [CONFIG_REGISTER, CONFIG_SUBSCRIBE])
async def test_malformed_request_is_an_error_of_its_own_call(serve: Serve, dial: Dial, method: str) -> None:
    serving = await serve()
    channel = dial(serving.port)

    with pytest.raises(aio.AioRpcError) as refused:
        await channel.unary_unary(method)(b"\x0a\xff\xff", timeout=3)

    assert refused.value.code() is grpc.StatusCode.INTERNAL
    assert "ClientInfo" in (refused.value.details() or "")
    assert (await Client(channel).register()).code == 0


async def test_call_without_a_message_and_call_that_never_sends_one(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=settings(request_timeout_s=0.1))
    channel = dial(serving.port)
    codes = []
    for finish in (True, False):
        call = channel.stream_stream(CONFIG_REGISTER)(timeout=3)
        if finish:
            await call.done_writing()
        codes.append(await call.code())

    assert codes == [grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED]


async def test_request_above_the_limit_is_refused(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=settings(max_receive_bytes=1000))
    channel = dial(serving.port)

    with pytest.raises(aio.AioRpcError) as refused:
        await channel.unary_unary(CONFIG_REGISTER)(b"x" * 2000, timeout=3)

    assert refused.value.code() in {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED}
    assert (await Client(channel).register()).code == 0


class BrokenTables(FakeTables):
    """An owner of tables with a bug."""

    def resolve(self, job_id: str, peer_ip: str) -> ServiceRef | Unresolved:
        raise RuntimeError("a bug in resolve")


async def test_a_bug_ends_its_call_with_unknown_and_the_text(serve: Serve, dial: Dial) -> None:
    serving = await serve(tables=BrokenTables())
    client = Client(dial(serving.port))
    await client.register()

    with pytest.raises(aio.AioRpcError) as refused:
        await client.subscribe().read()

    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert "a bug in resolve" in (refused.value.details() or "")
    assert (await client.register()).code == 0


async def test_connections_above_the_limit_are_reset(serve: Serve, dial: Dial) -> None:
    serving = await serve(settings=settings(max_connections=1))
    assert (await Client(dial(serving.port)).register()).code == 0

    with pytest.raises(aio.AioRpcError) as refused:
        await Client(dial(serving.port)).register()

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_port_in_use_stops_the_start_with_the_reason(serve: Serve) -> None:
    serving = await serve()

    with pytest.raises(ServerNotStarted, match=r"grpc\.listen .* already in use"):
        await serve(settings=ServerSettings(listen=f"127.0.0.1:{serving.port}"))


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:", "127.0.0.1:99999", ":-1"])
async def test_an_address_that_is_none_stops_the_start(serve: Serve, listen: str) -> None:
    with pytest.raises(ServerNotStarted, match=r"not \[HOST\]:PORT"):
        await serve(settings=ServerSettings(listen=listen))


@pytest.mark.parametrize("listen", [":0", "[::]:0", "localhost:0", "0.0.0.0:0"])
async def test_every_way_to_write_an_address_is_served(serve: Serve, listen: str) -> None:
    assert (await serve(settings=ServerSettings(listen=listen))).port > 0


async def pings(port: int, *, count: int, every_s: float) -> list[int]:
    """Send bare HTTP/2 pings without any call, as a keep-alive does; the frame types that come back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = bytearray()
    reading = asyncio.create_task(_collect(reader, answer))
    # A client acknowledges the server's settings, or is cut off for that.
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(SETTINGS, b"") + _frame(SETTINGS, b"", flags=1))
    for number in range(count):
        writer.write(_frame(PING, struct.pack(">Q", number)))
        await asyncio.sleep(every_s)
    writer.close()
    await reading
    kinds, at = [], 0
    while len(answer) - at >= 9:
        kinds.append(answer[at + 3])
        at += 9 + int.from_bytes(answer[at : at + 3], "big")
    return kinds


async def _collect(reader: asyncio.StreamReader, into: bytearray) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            into += data


def _frame(kind: int, payload: bytes, *, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags, 0, 0, 0, 0)) + payload


async def test_keepalive_pings_without_calls_are_not_too_many(serve: Serve) -> None:
    # MS Controller pings each 5 s and the limit is 3 s; here both are ten times shorter.
    serving = await serve(settings=settings(min_client_ping_s=0.3))

    kinds = await pings(serving.port, count=5, every_s=0.5)

    assert kinds.count(PING) == 5
    assert GOAWAY not in kinds


async def test_pings_below_the_limit_are_told_off(serve: Serve) -> None:
    serving = await serve(settings=settings(min_client_ping_s=0.3))

    assert GOAWAY in await pings(serving.port, count=8, every_s=0.02)


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        pytest.param("ipv4:10.0.0.7:4711", ("10.0.0.7:4711", "10.0.0.7"), id="ipv4"),
        pytest.param("ipv6:%5Bfd00::12%5D:4711", ("[fd00::12]:4711", "fd00::12"), id="ipv6"),
        pytest.param("ipv6:[fd00::12%25eth0]:1", ("[fd00::12]:1", "fd00::12"), id="scope"),
        pytest.param("ipv6:%5B::ffff:10.0.0.7%5D:4711", ("10.0.0.7:4711", "10.0.0.7"), id="mapped"),
        pytest.param("unix:/run/x", ("/run/x", ""), id="unix"),
        pytest.param("nonsense", ("nonsense", ""), id="nonsense"),
    ],
)
def test_peer_address(peer: str, expected: tuple[str, str]) -> None:
    assert peer_address(peer) == expected


async def test_tls_files_that_do_not_exist_stop_the_start(serve: Serve, tmp_path: Path) -> None:
    tls = TlsFiles(cert_path=str(tmp_path / "no.crt"), key_path=str(tmp_path / "no.key"))

    with pytest.raises(ServerNotStarted, match=r"no\.key"):
        await serve(settings=settings(tls=tls))


async def test_a_certificate_without_a_key_names_the_missing_setting(serve: Serve) -> None:
    with pytest.raises(ServerNotStarted, match=r"grpc\.tls_key: is not set"):
        await serve(settings=settings(tls=TlsFiles(cert_path="some.crt", key_path="")))


TLS = Path(__file__).parents[1] / "data" / "tls"


@pytest.mark.parametrize("shows_certificate", [True, False])
async def test_mutual_tls_lets_in_who_shows_a_certificate(serve: Serve, shows_certificate: bool) -> None:
    files = TlsFiles(
        cert_path=str(TLS / "server.crt"), key_path=str(TLS / "server.key"), ca_path=str(TLS / "ca.crt")
    )
    serving = await serve(settings=settings(tls=files))
    credentials = grpc.ssl_channel_credentials(
        (TLS / "ca.crt").read_bytes(),
        (TLS / "client.key").read_bytes() if shows_certificate else None,
        (TLS / "client.crt").read_bytes() if shows_certificate else None,
    )

    async with aio.secure_channel(f"localhost:{serving.port}", credentials) as channel:
        if shows_certificate:
            assert (await Client(channel).register()).code == 0
            return
        with pytest.raises(aio.AioRpcError) as refused:
            await Client(channel).register()

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
