"""Whatever is repeated, late or missed: after the next full list the store equals a fresh one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.cluster.caches import Cache
from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import NODES, PODS, Source
from mindie_ha.cluster.store import Store
from mindie_ha.model.ids import ObjectKey, service_key
from tests.cluster import facts
from tests.cluster.facts import make_store

SERVICE = service_key("mindie", "svc")
NOW_S = 1_700_000_000.0


@dataclass(frozen=True)
class Event:
    """One state of one object, or its end."""

    source: Source
    item: SlimObject
    gone: bool


class World:
    """A true history: every write gets the next version."""

    def __init__(self) -> None:
        self.version = 0
        self.born = 0
        self.now: dict[tuple[str, ObjectKey], tuple[Source, SlimObject]] = {}
        self.history: list[Event] = []

    def write(self, source: Source, name: str, shade: int, *, end: bool) -> None:
        self.version += 1
        known = self.now.get((source.name, ObjectKey("" if source is NODES else "mindie", name)))
        if end and known is not None:
            item = known[1]
            del self.now[(source.name, item.key)]
            self.history.append(Event(source, item, gone=True))
            return
        if known is None:
            self.born += 1
        uid = known[1].metadata.uid if known is not None else f"uid-{name}-{self.born}"
        item = self._item(source, name, shade, uid)
        self.now[(source.name, item.key)] = (source, item)
        self.history.append(Event(source, item, gone=False))

    def _item(self, source: Source, name: str, shade: int, uid: str) -> SlimObject:
        if source is NODES:
            ready = shade % 2 == 0
            return facts.node(name, ready=ready, version=self.version, metadata={"uid": uid})
        return facts.pod(name, "p0", node=f"n{shade}", uid=uid, version=self.version, ip=f"10.0.0.{shade}")


WRITES = st.lists(
    st.tuples(st.sampled_from([PODS, NODES]), st.sampled_from("ab"), st.integers(1, 3), st.booleans()),
    min_size=1,
    max_size=25,
)


def picture(store: Store) -> object:
    """Everything that planners could see, without what depends on when it was heard."""
    view = store.view(SERVICE, now_s=NOW_S)
    assert view is not None
    pods = tuple((pod.key, pod.uid, pod.node, pod.ip) for pod in view.workloads[0].pods)
    nodes = {name: store.node_view(name, now_s=NOW_S).node for name in "ab"}
    shape = {name: (node.exists, node.uid, node.ready) for name, node in nodes.items()}
    by_node = {name: {pod.key for pod in store.pods_on(name)} for name in ("n1", "n2", "n3")}
    fleet = store.fleet(now_s=NOW_S)
    return pods, shape, by_node, fleet.nodes, fleet.ready, store.node_names()


class Heard:
    """A store and the informers' caches before it."""

    def __init__(self) -> None:
        self.store = make_store()
        self.store.apply(facts.job("p0"))
        self.caches = {source.name: Cache(source, on_change=self.store.on_change) for source in (PODS, NODES)}

    def hear(self, event: Event) -> None:
        cache = self.caches[event.source.name]
        if event.gone:
            cache.drop(event.item.key, uid=event.item.metadata.uid)
        else:
            cache.put(event.item)

    def list(self, world: World) -> None:
        for source in (PODS, NODES):
            found = {key[1]: item for key, (of, item) in world.now.items() if of is source}
            tuple(self.caches[source.name].replacing(found))
            self.store.on_listed(source, world.version)


@settings(deadline=None, max_examples=200)
@given(writes=WRITES, data=st.data())
def test_any_history_with_repeats_delays_and_losses_ends_as_a_fresh_list(
    writes: list[tuple[Source, str, int, bool]], data: st.DataObject
) -> None:
    async def play() -> None:
        world = World()
        for source, name, shade, end in writes:
            world.write(source, name, shade, end=end)
        heard, fresh = Heard(), Heard()
        news = st.lists(st.sampled_from(world.history), max_size=2 * len(world.history))
        for event in data.draw(news, label="as heard"):
            heard.hear(event)
        for event in data.draw(st.lists(st.sampled_from(world.history), max_size=5), label="late answers"):
            heard.store.apply(event.item, from_watch=False)
        heard.list(world)
        fresh.list(world)
        assert picture(heard.store) == picture(fresh.store)

    asyncio.run(play())
