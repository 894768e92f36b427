"""Another process leads: streams end, clients come back to it, and no table goes back in time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from grpc import aio
from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.channels.mailboxes import Mailboxes, Subscription
from mindie_ha.channels.ports import TableVersion
from mindie_ha.channels.settings import MailboxLimits
from mindie_ha.kit.clock import LoopClock
from tests.channels.conftest import Dial, Serve
from tests.channels.contract import Client
from tests.channels.fakes import CHAT, FakeTables, eventually, line_to, table


class Controller:
    """An MS Controller: registers, subscribes, and begins again whenever a stream ends."""

    def __init__(self, channel: Any) -> None:
        self._client = Client(channel)
        self.got: list[str] = []
        self.ended = 0

    async def run(self) -> None:
        while True:
            with suppress(aio.AioRpcError):
                await self._client.register()
                stream = self._client.subscribe()
                while (message := await stream.read()) is not aio.EOF:
                    self.got.append(message.rankTable)
            self.ended += 1
            await asyncio.sleep(0.05)


async def test_every_controller_has_the_current_table_soon_after_another_leads(
    serve: Serve, dial: Dial
) -> None:
    old, new = await serve(), await serve()
    clock = LoopClock()
    async with line_to(old.port) as line:  # the Service that leads to whoever leads
        controllers = [Controller(dial(line.port)) for _ in range(5)]
        tasks = [asyncio.create_task(one.run()) for one in controllers]
        old.mailboxes.publish(table(1))
        await eventually(lambda: all(one.got for one in controllers))

        new.tables.tables[CHAT] = table(2)  # written by the old leader, in the middle of handing it over
        old.mailboxes.publish(table(2))
        line.lead_to(new.port)
        since_s = clock.monotonic()
        await old.server.stop()
        await eventually(lambda: all(one.got[-1] == table(2).text for one in controllers), within_s=4.5)
        assert clock.monotonic() - since_s < 5

        new.mailboxes.publish(table(3))
        await eventually(lambda: all(one.got[-1] == table(3).text for one in controllers))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for one in controllers:
        assert one.got == sorted(one.got)  # never back in time
        assert one.ended >= 1


async def test_a_half_open_and_a_frozen_subscriber_delay_nobody(serve: Serve, dial: Dial) -> None:
    serving = await serve()
    async with line_to(serving.port) as dead, line_to(serving.port) as frozen:
        victims = [Client(dial(line.port)) for line in (dead, frozen)]
        for victim in victims:
            await victim.register()
        serving.mailboxes.publish(table(1))
        streams = [victim.subscribe() for victim in victims]
        for stream in streams:
            await stream.read()
        dead.swallow()  # packets go nowhere, nobody says goodbye
        healthy = Client(dial(serving.port))
        stream = healthy.subscribe()
        assert (await stream.read()).rankTable == table(1).text
        for generation in range(2, 6):
            serving.mailboxes.publish(table(generation, text="x" * 1_000_000 + str(generation)))
            async with asyncio.timeout(1):
                assert (await stream.read()).rankTable.endswith(str(generation))
        (owed,) = {one.generation for one in serving.mailboxes.owed(CHAT)} or {5}
        assert owed == 5  # whoever lags is owed the newest, and only that


async def test_a_subscriber_cut_in_the_middle_of_a_table_gets_all_of_the_newest(
    serve: Serve, dial: Dial
) -> None:
    serving = await serve()
    text = "y" * 3_000_000
    serving.mailboxes.publish(table(1, text=text))
    async with line_to(serving.port) as line:
        line.cut_after_bytes = 500_000
        client = Client(dial(line.port))
        await client.register()
        with pytest.raises(aio.AioRpcError):
            await client.subscribe().read()
        line.cut_after_bytes = 0
        serving.mailboxes.publish(table(2, text=text + "2"))
        async with asyncio.timeout(3):
            while True:
                with suppress(aio.AioRpcError):
                    assert (await client.subscribe().read()).rankTable == text + "2"
                    return
                await asyncio.sleep(0.05)


STEPS = st.lists(st.sampled_from(["write", "publish", "deliver", "fail", "lead", "look"]), max_size=60)


class OneLeader:
    """A process: its own view of the ledgers, its own mailboxes, one subscriber."""

    def __init__(self, sees: TableVersion | None) -> None:
        self.tables = FakeTables()
        if sees is not None:
            self.tables.tables[CHAT] = sees
        self.mailboxes = Mailboxes(tables=self.tables, clock=LoopClock(), limits=MailboxLimits())
        self.mailboxes.register("chat")
        self._seat = self.mailboxes.subscribe("chat", role="r", peer="10.0.0.1:1", peer_ip="10.0.0.1")
        self.subscription: Subscription = self._seat.__enter__()

    def close(self) -> None:
        self._seat.__exit__(None, None, None)


@settings(max_examples=150)
@given(steps=STEPS)
def test_generations_never_go_back_across_leaders(steps: list[str]) -> None:
    """A leader writes the ledger before it publishes, and one that takes over has read it: that is enough."""

    async def play() -> None:
        written: TableVersion | None = None
        seen: list[int] = []
        leader = OneLeader(None)
        for step in steps:
            match step:
                case "write":
                    written = table((written.generation if written is not None else 0) + 1)
                case "look" if written is not None:
                    leader.tables.tables[CHAT] = written
                case "publish" if written is not None:
                    leader.mailboxes.publish(written)
                case "lead":
                    leader.close()
                    leader = OneLeader(written)
                case "deliver" | "fail":
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0):
                            given = await leader.subscription.next()
                            assert given is not None
                            seen.append(given.generation)
                            if step == "deliver":
                                leader.subscription.confirm(given)
                            else:
                                leader.close()  # the stream ends, its client comes back
                                leader = OneLeader(written)
                case _:
                    pass
        leader.close()
        assert seen == sorted(seen)

    asyncio.run(play())
