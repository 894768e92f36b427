"""Certificates are read again when their files change; the upstream may be dialled with TLS."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from pathlib import Path

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.errors import ServerNotStarted
from mindie_ha.channels.settings import ServerSettings, TlsFiles, UpstreamSettings
from mindie_ha.channels.tls_files import TlsMaterial, TlsWatch
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import FakeTables, table

TLS = Path(__file__).parents[1] / "data" / "tls"
SERVER = TlsFiles(
    cert_path=str(TLS / "server.crt"), key_path=str(TLS / "server.key"), ca_path=str(TLS / "ca.crt")
)


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """A pair that the test may renew."""
    for name in ("server.crt", "server.key"):
        shutil.copy(TLS / name, tmp_path / name)
    return TlsFiles(cert_path=str(tmp_path / "server.crt"), key_path=str(tmp_path / "server.key"))


def renew(files: TlsFiles, *parts: str) -> None:
    """Replace the pair (or a part) by another, as a Secret's files are: at once."""
    for part in parts or ("crt", "key"):
        target = Path(files.cert_path if part == "crt" else files.key_path)
        beside = target.with_suffix(".new")
        shutil.copy(TLS / f"client.{part}", beside)
        beside.rename(target)


async def shown(port: int) -> bytes:
    """The certificate that a server shows to a new connection."""
    context = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


def der(name: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert((TLS / name).read_text(encoding="ascii"))


async def test_a_renewed_certificate_is_shown_without_a_restart(serve: Serve, files: TlsFiles) -> None:
    serving = await serve(settings=ServerSettings(listen="127.0.0.1:0", tls=files, stop_grace_s=0.1))
    assert await shown(serving.port) == der("server.crt")

    renew(files)

    assert await shown(serving.port) == der("client.crt")


@pytest.mark.parametrize("part", ["crt", "key"])
async def test_half_a_renewal_leaves_what_worked(serve: Serve, files: TlsFiles, part: str) -> None:
    serving = await serve(settings=ServerSettings(listen="127.0.0.1:0", tls=files, stop_grace_s=0.1))

    renew(files, part)
    assert await shown(serving.port) == der("server.crt")
    renew(files)

    assert await shown(serving.port) == der("client.crt")


def test_renewals_and_failures_are_told_once(files: TlsFiles) -> None:
    heard: list[tuple[bool, str]] = []
    watch = TlsWatch(files, where="grpc.tls", heard=lambda used, text: heard.append((used, text)))
    first = watch.load()

    assert [watch.renewed() for _ in range(2)] == [None, None]
    Path(files.cert_path).write_bytes(b"not a certificate")
    assert [watch.renewed() for _ in range(3)] == [None] * 3
    assert watch.current() == first
    renew(files)
    assert watch.renewed() is not None

    assert [used for used, _ in heard] == [False, True]
    assert "grpc.tls_cert" in heard[0][1]
    assert "certificate before is still used" in heard[0][1]


@pytest.mark.parametrize(
    ("cert", "key", "words"),
    [
        pytest.param("server.crt", "client.key", "cannot be used", id="a pair that does not match"),
        pytest.param("ca.crt", "README.md", "cannot be used", id="no key at all"),
        pytest.param("no.crt", "server.key", "cannot be read", id="no file"),
    ],
)
def test_files_that_do_not_fit_stop_the_start(cert: str, key: str, words: str) -> None:
    files = TlsFiles(cert_path=str(TLS / cert), key_path=str(TLS / key))

    with pytest.raises(ServerNotStarted, match=words) as refused:
        TlsWatch(files, where="grpc.tls").load()

    assert "PRIVATE KEY" not in str(refused.value)


def test_key_material_is_not_printed() -> None:
    assert "secret" not in repr(TlsMaterial(key=b"secret", cert=b"secret", ca=None))


async def test_the_upstream_is_dialled_with_tls_and_our_certificate(serve: Serve, dial: Dial) -> None:
    clusterd = await serve(
        settings=ServerSettings(listen="127.0.0.1:0", tls=SERVER, stop_grace_s=0.1),
    )
    clusterd.mailboxes.publish(table(7))
    ours = TlsFiles(
        cert_path=str(TLS / "client.crt"), key_path=str(TLS / "client.key"), ca_path=str(TLS / "ca.crt")
    )
    upstream = UpstreamSettings(address=f"127.0.0.1:{clusterd.port}", tls=ours, tls_name="localhost")
    front = await serve(tables=FakeTables(services=set()), upstream=upstream)

    client = Client(dial(front.port))
    assert (await client.register()).code == 0

    assert (await client.subscribe().read()).rankTable == table(7).text


async def test_an_upstream_that_is_not_who_it_should_be_gets_nothing(serve: Serve, dial: Dial) -> None:
    clusterd = await serve(settings=ServerSettings(listen="127.0.0.1:0", tls=SERVER, stop_grace_s=0.1))
    anonymous = TlsFiles(cert_path="", key_path="", ca_path=str(TLS / "ca.crt"))
    for name in ("localhost", "somebody.else"):  # no certificate of ours; another name in theirs
        upstream = UpstreamSettings(address=f"127.0.0.1:{clusterd.port}", tls=anonymous, tls_name=name)
        front = await serve(tables=FakeTables(services=set()), upstream=upstream)

        with pytest.raises(aio.AioRpcError) as refused:
            await Client(dial(front.port)).register()

        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_renewed_files_are_used_for_the_next_call_and_streams_live_on(
    serve: Serve, dial: Dial, files: TlsFiles, tmp_path: Path
) -> None:
    clusterd = await serve(settings=ServerSettings(listen="127.0.0.1:0", tls=SERVER, stop_grace_s=0.1))
    shutil.copy(TLS / "ca.crt", tmp_path / "ca.crt")
    ours = TlsFiles(cert_path=files.cert_path, key_path=files.key_path, ca_path=str(tmp_path / "ca.crt"))
    upstream = UpstreamSettings(address=f"127.0.0.1:{clusterd.port}", tls=ours, tls_name="localhost")
    front = await serve(tables=FakeTables(services=set()), upstream=upstream)
    client = Client(dial(front.port))
    await client.register()
    clusterd.mailboxes.publish(table(1))
    stream = client.subscribe()
    assert (await stream.read()).rankTable == table(1).text

    renew(files)
    assert (await client.register()).code == 0

    clusterd.mailboxes.publish(table(2))
    assert (await stream.read()).rankTable == table(2).text
