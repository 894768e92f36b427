"""Several want one node isolated: an older decision never takes away what one of them added since."""

from __future__ import annotations

import pytest

from mindie_ha.cluster.ledgers import Ledgers
from mindie_ha.engine.executor import Executor
from mindie_ha.engine.marks import Marks
from mindie_ha.engine.node_ledgers import NodeLedgers
from mindie_ha.engine.permits import Permits
from mindie_ha.model.decisions import IsolateNode, NodeDecision
from mindie_ha.model.errors import Conflict
from mindie_ha.model.ledgers import Isolation, NodeLedger
from tools.soak.judges import TAINT

from .clusters import CHIP, cluster

pytestmark = pytest.mark.looptime
NODE = "node-5"
P0 = "mindie-server-p0"


def isolation(name: str) -> Isolation:
    return Isolation(
        id=f"ByHand:{name}",
        reason="ByHand",
        wanted_by=(f"person:{name}",),
        until="released",
        since_s=1.0,
        undo="kubectl taint …",
    )


async def test_a_release_decided_before_an_isolation_was_added_does_not_undo_it() -> None:
    async with cluster() as c:
        store, app = c.app.core.store, c.app
        ledgers = Ledgers(store=store, writer=app.writer, namespace=app.settings.cluster.namespace)
        nodes = NodeLedgers(store=store, ledgers=ledgers, clock=c.clock)
        executor = Executor(
            writer=app.writer,
            nodes=nodes,
            marks=Marks(writer=app.writer, settings=app.settings, clock=c.clock),
            permits=Permits(facts=store, settings=app.settings),
        )
        uid = store.node_view(NODE, now_s=0).node.uid
        assert await executor.run((IsolateNode(NODE, uid, isolation("ann")),)) == ()
        looked_at = store.node_view(NODE, now_s=0)
        assert await executor.run((IsolateNode(NODE, uid, isolation("bob")),)) == ()
        released = NodeDecision(NODE, NodeLedger(node=NODE, node_uid=uid), tainted=False, changed=True)
        with pytest.raises(Conflict):
            await executor.settle_node(released, view=looked_at)
        assert TAINT in c.taints(NODE)
        ledger = store.node_view(NODE, now_s=0).ledger
        assert ledger is not None
        assert {one.id for one in ledger.isolations} == {"ByHand:ann", "ByHand:bob"}


async def test_a_recovery_that_waits_for_a_late_list_closes_when_the_list_comes() -> None:
    async with cluster(lag_s=(55.0, 55.0)) as c:
        await c.serving()
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: c.ledger(P0)["recovery"], "a recovery")
        closed = await c.recovered(P0, deadline_s=300)
        assert 40 < closed["closed_at_s"] - closed["opened_at_s"] < 65
        assert TAINT not in c.taints(node)
