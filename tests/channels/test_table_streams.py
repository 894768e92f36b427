"""`config.Config` on a real socket, with a client that knows only the contract's field numbers."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio

from mindie_ha.channels.ports import ServiceRef
from mindie_ha.channels.settings import MailboxLimits
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import CHAT, FakeTables, eventually, line_to, table


async def read(stream: Any) -> str:
    async with asyncio.timeout(3):
        message = await stream.read()
    assert message is not aio.EOF
    assert message.jobId == "chat"
    text: str = message.rankTable
    return text


async def test_current_table_comes_at_once_on_every_subscribe(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    serving.mailboxes.publish(table(1))
    async with line_to(serving.port) as line:
        client = Client(dial(line.port))
        assert (await client.register()).code == 0
        first, second = client.subscribe(), client.subscribe()
        assert await read(first) == await read(second) == table(1).text

        line.cut()
        with pytest.raises(aio.AioRpcError):
            await read(first)
        serving.mailboxes.publish(table(2))

        again = Client(dial(line.port)).subscribe()
        assert await read(again) == table(2).text


async def test_two_subscribers_both_get_every_final_table(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    clients = [Client(dial(serving.port)), Client(dial(serving.port), role="standby")]
    await clients[0].register()
    streams = [client.subscribe() for client in clients]
    await eventually(lambda: len(serving.mailboxes.subscribers(CHAT)) == 2)

    for generation in (1, 2, 3):
        serving.mailboxes.publish(table(generation))
        assert [await read(stream) for stream in streams] == [table(generation).text] * 2

    receipts = serving.tables.receipts
    for peer in {receipt.peer for receipt in receipts}:
        assert [receipt.generation for receipt in receipts if receipt.peer == peer] == [1, 2, 3]
    assert len(receipts) == 6
    assert serving.mailboxes.owed(CHAT) == ()


async def test_register_does_not_end_the_stream_of_another(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    await eventually(lambda: serving.mailboxes.subscribers(CHAT))

    await Client(dial(serving.port), role="standby").register()
    serving.mailboxes.publish(table(1))

    assert await read(stream) == table(1).text


async def test_subscribe_without_register_is_unknown_with_the_text_of_the_wire(
    serve: Serve, dial: Dial
) -> None:
    serving = await serve()

    with pytest.raises(aio.AioRpcError) as refused:
        await Client(dial(serving.port)).subscribe().read()

    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == "jobId=chat not registered, role=mindie-ms-controller"


async def test_registered_without_a_table_waits_for_one(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    await eventually(lambda: serving.tables.joined)

    serving.mailboxes.publish(table(1))

    assert await read(stream) == table(1).text


async def test_table_held_by_its_owner_is_replayed_after_our_restart(serve: Serve, dial: Dial) -> None:
    serving = await serve(tables=FakeTables(tables={CHAT: table(7)}))
    client = Client(dial(serving.port))
    await client.register()

    assert await read(client.subscribe()) == table(7).text


async def test_equal_digest_and_older_generation_are_not_sent(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    serving.mailboxes.publish(table(5))
    stream = client.subscribe()
    assert await read(stream) == table(5).text

    serving.mailboxes.publish(table(4))
    serving.mailboxes.publish(table(6, digest=table(5).digest, text="same content, never sent"))
    serving.mailboxes.publish(table(7))

    assert await read(stream) == table(7).text


async def test_slow_reader_loses_only_what_lies_between(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    await eventually(lambda: serving.mailboxes.subscribers(CHAT))
    last = 40

    for generation in range(1, last + 1):
        serving.mailboxes.publish(table(generation, text=f"{generation}:" + "x" * 2_000_000))
        await asyncio.sleep(0.005)  # lets the transport fill up
    got: list[int] = []
    while not got or got[-1] != last:
        got.append(int((await read(stream)).partition(":")[0]))

    assert got == sorted(set(got))
    assert len(got) < last / 2


async def test_one_job_id_in_two_namespaces_is_told_apart_by_the_pod_ip(serve: Serve, dial: Dial) -> None:
    other = ServiceRef("other", "chat")
    tables = FakeTables(services={CHAT, other})
    serving = await serve(tables=tables)
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    serving.mailboxes.publish(table(1))
    serving.mailboxes.publish(table(9, service=other))
    await eventually(serving.mailboxes.unresolved)
    assert tables.receipts == []

    tables.pods["127.0.0.1"] = other  # the pod cache has caught up

    assert await read(stream) == table(9).text
    assert serving.mailboxes.unresolved() == ()


async def test_stream_follows_when_a_second_namespace_shows_whose_it_is(serve: Serve, dial: Dial) -> None:
    other = ServiceRef("other", "chat")
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    serving.mailboxes.publish(table(5))
    stream = client.subscribe()
    assert await read(stream) == table(5).text

    serving.tables.services.add(other)
    serving.tables.pods["127.0.0.1"] = other
    serving.mailboxes.publish(table(1, service=other, text="of the other"))

    assert await read(stream) == "of the other"
    assert serving.tables.left == [(CHAT, "mindie-ms-controller", "ranktable")]


async def test_a_hard_cut_is_reported_as_left(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    async with line_to(serving.port) as line:
        client = Client(dial(line.port))
        await client.register()
        stream = client.subscribe()
        await eventually(lambda: serving.mailboxes.subscribers(CHAT))

        line.cut()
        await eventually(lambda: serving.tables.left)

        assert serving.mailboxes.subscribers(CHAT) == ()
        stream.cancel()


async def test_service_that_begins_anew_sends_its_first_generation(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    serving.mailboxes.publish(table(9))
    stream = client.subscribe()
    assert await read(stream) == table(9).text

    serving.mailboxes.forget(CHAT)
    serving.mailboxes.publish(table(1))

    assert await read(stream) == table(1).text


async def test_bounds_on_names_jobs_and_streams(serve: Serve, dial: Dial) -> None:
    serving = await serve(
        limits=MailboxLimits(max_registrations=1, max_subscribers_per_ip=1, max_name_chars=20)
    )
    channel = dial(serving.port)
    assert (await Client(channel, job_id="x" * 21).register()).code == 409
    assert (await Client(channel, job_id="other").register()).code == 0
    assert (await Client(channel).register()).code == 0  # the idle one is forgotten

    stream = Client(channel).subscribe()
    await eventually(lambda: serving.mailboxes.subscribers(CHAT))
    full = await Client(channel, job_id="third").register()
    with pytest.raises(aio.AioRpcError) as refused:
        await Client(channel).subscribe().read()

    assert full.code == 500
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    stream.cancel()


async def test_stopping_ends_streams_with_status_ok(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    client = Client(dial(serving.port))
    await client.register()
    stream = client.subscribe()
    await eventually(lambda: serving.mailboxes.subscribers(CHAT))

    await serving.server.stop()

    assert await stream.read() is aio.EOF
    assert await stream.code() is grpc.StatusCode.OK
