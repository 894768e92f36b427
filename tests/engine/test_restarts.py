"""The controller dies at every point of a recovery; the next one finishes it as if nothing had been.

The point is a decision (after it was recorded) or a write to the API (before it leaves, or after it arrived
and before its answer is heard). The judge sees that nothing is deleted twice, that no attempt is lost and
no budget grows, and that ids and generations go on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable

import pytest

from tools.soak.judges import TAINT

from .clusters import CHIP, NAMESPACE, Cluster, cluster, quick

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"
DECISIONS = 17  # of one recovery, counted from the fault; more than there are does no harm
WRITES = 23  # likewise


async def fault_and_finish(c: Cluster, died: Awaitable[object]) -> None:
    """Break a card, wait until the controller died (or was done before), let another one finish."""
    ids, other = c.table()["ids"], c.uids(D0)
    node = c.node_of(f"{P0}-master-0")
    old = c.uids(P0)
    await c.world.set_faults(node, [CHIP])
    await asyncio.wait((asyncio.ensure_future(died),), timeout=60)
    await c.kill()
    await c.clock.sleep(1.0)
    await c.start(quick())
    await c.recovered(P0)
    ledger = c.ledger(P0)
    assert (ledger["epoch"], len(ledger["attempts"])) == (1, 1)
    assert set(c.judge.deleted) == set(old.values())
    assert c.uids(D0) == other
    assert c.table()["ids"] == ids
    await c.until(lambda: c.published() == {P0, D0}, "the new table")
    await c.quiet(within_s=36.0, for_s=10.0)
    assert not c.taints(node)
    boot = c.get("ConfigMap", "global-ranktable")
    assert boot is not None
    assert boot["data"]["global_ranktable.json"] == c.table()["text"]


@pytest.mark.parametrize("cut", range(1, DECISIONS + 1))
async def test_killed_after_a_decision(cut: int) -> None:
    async with cluster(settings=quick()) as c:
        run = c.runs[-1]
        died = asyncio.Event()
        known = len(run.records)

        def count(_: object) -> None:
            if len(run.records) - known >= cut:
                run.door.shut.set()  # what this decision wants to do does not happen any more
                died.set()

        run.app.recorder.listeners.append(count)
        await fault_and_finish(c, died.wait())


@pytest.mark.parametrize("cut", range(WRITES + 1))
async def test_killed_at_a_write(cut: int) -> None:
    """Write `cut` arrives and its answer does not; with 0 the first one never leaves.

    For whoever comes next this is the same as dying before write `cut + 1` leaves.
    """
    async with cluster(settings=quick()) as c:
        door = c.runs[-1].door
        if cut:
            door.cut_after = door.writes + cut
        else:
            door.cut_before = door.writes + 1
        await fault_and_finish(c, door.shut.wait())


async def test_killed_again_and_again() -> None:
    async with cluster(settings=quick()) as c:
        old = c.uids(P0)
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        for number in range(8):
            await c.kill()
            await c.start(quick(), cut_after=number % 4 + 1)
            await c.clock.sleep(0.7)
        await c.kill()
        await c.start(quick())
        await c.recovered(P0)
        assert set(c.judge.deleted) == set(old.values())
        assert len(c.ledger(P0)["attempts"]) == 1


async def test_a_software_retry_is_paid_once_over_restarts() -> None:
    async with cluster(settings=quick()) as c:
        await c.until(lambda: c.get("ConfigMap", "vcjob-fault-npu-cm", "volcano-system"), "patience")
        await c.exit_container(f"{D0}-worker-0", 1)
        await c.until(lambda: c.judge.deleted, "acted")
        for _ in range(3):
            await c.kill()
            await c.start(quick())
            await c.clock.sleep(1.0)
        await c.recovered(D0)
        assert c.ledger(D0)["software_retries_spent"] == 1


async def test_a_restart_while_nothing_is_wrong_writes_nothing() -> None:
    async with cluster(settings=quick()) as c:
        await c.clock.sleep(60)
        await c.kill()
        count = len(c.judge.writes)
        await c.start(quick())
        await c.clock.sleep(60)
        assert [write.path for write in c.judge.writes[count:]] == []


async def test_what_happened_while_no_controller_ran_is_answered() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        await c.clock.sleep(60)
        await c.kill()
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.delete_pod(f"{D0}-worker-0")
        await c.clock.sleep(30)
        await c.start(quick())
        await c.recovered(P0)
        await c.recovered(D0)
        assert c.published() == {P0, D0}


async def test_a_fault_that_healed_while_no_controller_ran_does_not_leave_a_taint() -> None:
    async with cluster(settings=quick(), lag_s=(4.0, 4.0)) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: TAINT in c.taints(node), "isolated")
        await c.kill()
        await c.world.heal(node)
        await c.clock.sleep(20)
        await c.start(quick())
        await c.clock.sleep(30)
        await c.until(lambda: c.ledger(P0)["recovery"] is None, "closed", deadline_s=400)
        await c.until(lambda: not c.taints(node), "released", deadline_s=400)


async def test_a_controller_of_a_newer_version_ends_what_an_older_one_began() -> None:
    async with cluster(settings=quick()) as c:
        await c.world.set_faults(c.node_of("mindie-server-p0-master-0"), [CHIP])
        name = "mindie-ha-ledger-ascendjob-mindie-server-p0"
        await c.until(lambda: _phase(c) == "table", "half way", every_s=0.01)
        await c.kill()
        found = c.get("ConfigMap", name)
        assert found is not None
        text = found["data"]["ledger.json"].replace('"schema_version":3', '"schema_version":1')
        assert '"schema_version":1' in text
        data = {"ledger.json": text, "digest": hashlib.sha256(text.encode()).hexdigest()}
        await c.api.patch("ConfigMap", name, NAMESPACE, {"data": data})
        await c.start(quick())
        record = await c.recovered("mindie-server-p0")
        assert record["outcome"] == "recovered"
        assert c.ledger("mindie-server-p0")["schema_version"] == 3


def _phase(c: Cluster) -> str:
    recovery = (c.ledger("mindie-server-p0") or {}).get("recovery")
    return recovery["phase"] if recovery else ""
