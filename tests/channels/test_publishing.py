"""The publisher: order of the channels, what is owed, replay, long polls; on virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from mindie_ha.channels.configmap import (
    MAX_TEXT_BYTES,
    TABLE_KEY,
)
from mindie_ha.channels.deliveries import DELIVERED, Outcome
from mindie_ha.channels.errors import LimitReached
from mindie_ha.channels.http_push import HttpPush
from mindie_ha.channels.mailboxes import Mailboxes
from mindie_ha.channels.ports import (
    ConfigMapTarget,
    DeliveryProblem,
    DeliveryReceipt,
    GrpcPeer,
    HttpTarget,
    TableVersion,
    Target,
    WriteResult,
)
from mindie_ha.channels.publishing import Publisher
from mindie_ha.channels.settings import MailboxLimits, PublisherSettings
from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from tests.channels.fakes import CHAT, FakeConfigMaps, FakeTables, supervisor, table

CONFIG_MAP = ConfigMapTarget("mindie", "global-ranktable")
URL = HttpTarget("http://receiver/table")
BOTH: tuple[Target, ...] = (URL, CONFIG_MAP)

pytestmark = pytest.mark.looptime


class MemoryPush(HttpPush):
    """HTTP in memory: notes when each table came."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__()
        self._clock = clock
        self.got: list[tuple[float, int]] = []
        self.outcome: Outcome = DELIVERED

    async def post(self, target: HttpTarget, table: TableVersion) -> Outcome:
        if self.outcome is DELIVERED:
            self.got.append((round(self._clock.monotonic(), 3), table.generation))
        return self.outcome


@dataclass
class World:
    """A publisher and everything around it, in memory."""

    clock: LoopClock = field(default_factory=LoopClock)
    tables: FakeTables = field(default_factory=FakeTables)
    configmaps: FakeConfigMaps = field(default_factory=FakeConfigMaps)
    problems: list[DeliveryProblem] = field(default_factory=list)
    limits: MailboxLimits = field(default_factory=MailboxLimits)

    def __post_init__(self) -> None:
        self.push = MemoryPush(self.clock)
        self.mailboxes = Mailboxes(tables=self.tables, clock=self.clock, limits=self.limits)
        self.publisher = Publisher(
            tables=self.tables,
            mailboxes=self.mailboxes,
            configmaps=self.configmaps,
            http=self.push,
            clock=self.clock,
            entropy=Entropy(1),
            supervisor=supervisor(self.clock),
            settings=PublisherSettings(),
            on_problem=self.problems.append,
        )


def channels(receipts: list[DeliveryReceipt]) -> list[str]:
    return [receipt.channel for receipt in receipts]


async def test_configmap_comes_first_then_grpc_then_http() -> None:
    world = World()
    world.mailboxes.register("chat")
    with world.mailboxes.subscribe("chat", role="ms", peer="127.0.0.1:1", peer_ip="127.0.0.1") as stream:
        reading = asyncio.create_task(stream.next())
        await asyncio.sleep(0)
        await world.publisher.publish(table(1), BOTH)
        stream.confirm(await reading or table(0))
        await asyncio.sleep(1)

    assert sorted(channels(world.tables.receipts)) == ["configmap", "grpc", "http"]
    assert world.tables.receipts[0].channel == "configmap"
    assert world.configmaps.written == [("mindie/global-ranktable", TABLE_KEY, table(1).text)]
    assert world.publisher.pending(CHAT) == ()
    await world.publisher.close()


async def test_failing_api_holds_the_others_back_for_one_second_only() -> None:
    world = World(configmaps=FakeConfigMaps(results=[WriteResult("failed", "HTTP 503")] * 100))
    await world.publisher.publish(table(1), BOTH)
    await asyncio.sleep(0.1)

    assert world.push.got == [(1.0, 1)]
    assert [(one.destination, one.last_error) for one in world.publisher.pending(CHAT)] == [
        (CONFIG_MAP, "HTTP 503")
    ]
    world.configmaps.results.clear()
    await asyncio.sleep(60)
    assert world.publisher.pending(CHAT) == ()
    await world.publisher.close()


async def test_everything_counts_as_owed_while_the_configmap_holds_it_back() -> None:
    world = World(configmaps=FakeConfigMaps(hangs=True))
    world.mailboxes.register("chat")
    with world.mailboxes.subscribe("chat", role="ms", peer="127.0.0.1:1", peer_ip="127.0.0.1") as stream:
        reading = asyncio.create_task(stream.next())
        await asyncio.sleep(0)
        publishing = asyncio.create_task(world.publisher.publish(table(1), BOTH))
        await asyncio.sleep(0.5)

        owed = [one.destination for one in world.publisher.pending(CHAT)]

        assert owed == [CONFIG_MAP, GrpcPeer("127.0.0.1:1", "ms"), URL]
        await publishing
        assert (await reading) == table(1)
    await world.publisher.close()


async def test_newer_table_overtakes_one_that_is_held_back() -> None:
    world = World(configmaps=FakeConfigMaps(hangs=True))
    first = asyncio.create_task(world.publisher.publish(table(1), BOTH))
    await asyncio.sleep(0.9)
    await world.publisher.publish(table(2), BOTH)
    await first
    await asyncio.sleep(1)

    assert world.push.got == [(1.9, 2)]
    await world.publisher.publish(table(1), BOTH)
    assert world.mailboxes.current(CHAT) == table(2)
    await world.publisher.close()


async def test_cancelled_caller_leaves_the_table_with_every_channel() -> None:
    world = World(configmaps=FakeConfigMaps(hangs=True))
    publishing = asyncio.create_task(world.publisher.publish(table(1), BOTH))
    await asyncio.sleep(0.2)
    publishing.cancel()
    await asyncio.sleep(0.2)

    assert publishing.cancelled()
    assert world.push.got == [(0.2, 1)]
    assert world.mailboxes.current(CHAT) == table(1)
    await world.publisher.close()


async def test_refused_configmap_does_not_hold_back() -> None:
    world = World(configmaps=FakeConfigMaps(results=[WriteResult("refused", "SharedTable")] * 9))
    await world.publisher.publish(table(1), BOTH)
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert world.push.got == [(0.0, 1)]
    assert world.publisher.pending(CHAT)[0].refused
    await world.publisher.close()


async def test_after_a_restart_a_target_gets_the_table_once_and_a_configmap_that_holds_it_nothing() -> None:
    world = World(configmaps=FakeConfigMaps(results=[WriteResult("unchanged")]))
    for _ in range(2):
        await world.publisher.publish(table(4), BOTH)
        await asyncio.sleep(1)
    assert [generation for _, generation in world.push.got] == [4]
    assert world.configmaps.written == []
    assert world.publisher.pending(CHAT) == ()
    await world.publisher.close()


async def test_target_that_is_not_named_any_more_is_owed_nothing() -> None:
    world = World()
    world.push.outcome = Outcome("failed", "down")
    await world.publisher.publish(table(1), [URL])
    await asyncio.sleep(0.1)
    assert world.publisher.pending(CHAT)

    await world.publisher.publish(table(2), [])

    assert world.publisher.pending(CHAT) == ()
    await world.publisher.close()


async def test_forgotten_service_begins_anew() -> None:
    world = World()
    await world.publisher.publish(table(9), BOTH)
    await world.publisher.forget(CHAT)
    await world.publisher.publish(table(1), BOTH)
    await asyncio.sleep(1)

    assert [generation for _, generation in world.push.got][-1] == 1
    assert world.mailboxes.current(CHAT) == table(1)
    await world.publisher.close()


async def test_table_too_large_for_a_configmap_is_refused_with_its_size() -> None:
    world = World()
    await world.publisher.publish(table(1, text="x" * (MAX_TEXT_BYTES + 1)), [CONFIG_MAP])

    assert f"{MAX_TEXT_BYTES + 1} bytes" in world.problems[0].reason
    assert world.configmaps.written == []
    await world.publisher.close()


async def test_long_poll_returns_at_once_on_a_difference_and_else_waits() -> None:
    world = World()
    await world.publisher.publish(table(1), [])
    assert await world.publisher.wait_newer(CHAT, "", 30.0) == table(1)

    asyncio.get_running_loop().call_later(5, world.mailboxes.publish, table(2))
    assert await world.publisher.wait_newer(CHAT, "sha256:1", 30.0) == table(2)
    assert world.clock.monotonic() == pytest.approx(5.0)

    assert await world.publisher.wait_newer(CHAT, "sha256:2", 30.0) is None
    assert world.clock.monotonic() == pytest.approx(35.0)


async def test_long_polls_are_bounded_and_end_with_us() -> None:
    world = World(limits=MailboxLimits(max_waiters=1))
    waiting = asyncio.create_task(world.publisher.wait_newer(CHAT, "", 30.0))
    await asyncio.sleep(1)
    with pytest.raises(LimitReached):
        await world.publisher.wait_newer(CHAT, "", 30.0)

    world.mailboxes.close()

    assert await waiting is None
    assert world.clock.monotonic() == pytest.approx(1.0)
    assert await world.publisher.wait_newer(CHAT, "", 30.0) is None
