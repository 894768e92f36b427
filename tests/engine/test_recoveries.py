"""One fault at a time, from the report to the closed recovery."""

from __future__ import annotations

import pytest

from mindie_ha.demo import manifests
from tools.soak.judges import TAINT

from .clusters import CHIP, NAMESPACE, NOT_READY, Cluster, cluster, quick, small_service

pytestmark = pytest.mark.looptime
P0, D0 = "mindie-server-p0", "mindie-server-d0"


async def test_a_chip_fault_rebuilds_its_instance_elsewhere_and_nothing_else() -> None:
    async with cluster(settings=quick()) as c:
        before, others = c.uids(P0), {**c.uids(D0), **c.uids("mindie-ms-controller")}
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        closed = await c.recovered(P0)
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["job"])
        assert set(c.judge.deleted) == set(before.values())
        assert others.items() <= c.uids().items()
        assert all(c.node_of(name) != node for name in c.uids(P0))
        assert c.published() == {P0, D0}
        assert {pod["status"]["podIP"] for pod in c.pods(P0).values()} <= c.published_ips()
        await c.quiet()
        assert not c.taints(node)


async def test_a_lost_node_rebuilds_its_instance_though_nobody_confirms_the_end() -> None:
    async with cluster(settings=quick()) as c:
        node = c.node_of(f"{P0}-worker-0")
        old = c.uids(P0)
        await c.world.set_faults(node, [NOT_READY])
        closed = await c.recovered(P0)
        lost_s = closed["intent"]["at_s"]
        assert closed["opened_at_s"] - lost_s == pytest.approx(15, abs=0.5)
        assert not set(c.uids(P0).values()) & set(old.values())
        assert node not in {c.node_of(name) for name in c.uids(P0)}
        await c.clock.sleep(400)  # longer than the eviction of what is left there
        assert TAINT in c.taints(node)
        await c.world.heal(node)
        await c.until(lambda: TAINT not in c.taints(node), "released", deadline_s=400)
        assert len(c.ledger(P0)["closed"]) == 1


async def test_pods_that_already_terminate_on_a_lost_node_are_forced() -> None:
    """The node controller evicts them after 300 s; without a kubelet their end is never confirmed."""
    async with cluster(settings=quick(), start=False) as c:
        await c.until(lambda: len(c.pods(P0)) == 2 and all(c.node_of(n) for n in c.pods(P0)), "placed")
        await c.clock.sleep(10)
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.until(
            lambda: c.pods()[f"{P0}-master-0"]["metadata"].get("deletionTimestamp"),
            "evicted",
            deadline_s=400,
        )
        await c.start(quick())
        await c.recovered(P0)
        assert c.published() == {P0, D0}


async def test_a_short_pause_of_a_node_is_no_fault() -> None:
    async with cluster() as c:
        node = c.node_of(f"{P0}-master-0")
        before = c.uids()
        await c.world.set_faults(node, [NOT_READY])
        await c.clock.sleep(12)
        await c.world.heal(node)
        await c.quiet()
        assert c.uids() == before


async def test_a_failed_pod_is_paid_from_the_budget_and_its_job_lives() -> None:
    async with cluster(settings=quick()) as c:
        await c.until(lambda: "Times" in _retries(c), "the operator's patience is written")
        await c.exit_container(f"{D0}-worker-0", 1)
        closed = await c.recovered(D0)
        assert closed["intent"]["cause"] == "PodFailed"
        assert c.ledger(D0)["software_retries_spent"] == 1
        assert not c.is_failed(D0)
        await c.quiet()


@pytest.mark.parametrize("retries", ["0", None], ids=["zero", "absent"])
async def test_a_failed_pod_without_budget_is_reported_only(retries: str | None) -> None:
    async with cluster(start=False) as c:
        await c.label_job(D0, fault_retry_times=retries)
        await c.start()
        await c.serving()
        before = c.uids()
        await c.exit_container(f"{D0}-worker-0", 1)
        await c.until(c.events, "people are told")
        await c.clock.sleep(30)
        assert c.uids() == before
        assert c.published() <= {P0, D0}


async def test_a_spent_budget_parks() -> None:
    async with cluster(settings=quick(), start=False) as c:
        await c.label_job(D0, fault_retry_times="1")
        await c.start(quick())
        await c.serving()
        await c.until(lambda: "Times" in _retries(c), "the operator's patience is written")
        await c.exit_container(f"{D0}-worker-0", 1)
        await c.recovered(D0)
        await c.exit_container(f"{D0}-worker-0", 1)
        await c.until(lambda: c.ledger(D0)["parked"], "parked")
        assert c.ledger(D0)["parked"]["reason"] in ("BudgetSpent", "OwnerGaveUp")
        assert c.state(D0) == "parked"
        assert c.events(c.ledger(D0)["parked"]["reason"])


async def test_a_pod_deleted_by_a_person_takes_its_siblings_along() -> None:
    async with cluster(settings=quick()) as c:
        old = c.uids(P0)
        await c.delete_pod(f"{P0}-worker-0")
        closed = await c.recovered(P0)
        assert closed["intent"]["cause"] == "MemberReplaced"
        assert not set(c.uids(P0).values()) & set(old.values())
        assert c.ledger(P0)["software_retries_spent"] == 0


async def test_the_last_instance_keeps_the_old_table_and_says_so() -> None:
    service = manifests.load("single-server")
    async with cluster(servers=("0",), service=service, settings=quick()) as c:
        only, old = "mindie-server-0", c.table()
        await c.world.set_faults(c.node_of(f"{only}-master-0"), [CHIP])
        await c.until(lambda: c.judge.deleted, "deleted")
        await c.until(lambda: c.events("NoServersLeft"), "people are told")
        assert c.table()["text"] == old["text"]
        report = next(one for one in c.app.reports() if one.table)
        assert report.table is not None
        assert f"generation {old['generation']} is kept" in report.table.sentence
        await c.recovered(only)
        await c.until(lambda: c.table()["generation"] == old["generation"] + 1, "new table")


async def test_a_new_prefill_is_held_until_a_decode_is_there() -> None:
    async with cluster(settings=quick()) as c:
        await c.api.delete("AscendJob", D0, NAMESPACE)
        await c.until(lambda: c.published() == {P0}, "D is gone, the running P stays")
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.recovered(P0)
        assert not _ips(c, P0) & c.published_ips()
        report = next(one for one in c.app.reports() if one.table)
        assert report.table is not None
        assert set(report.table.held_until_s) == {P0}
        await c.apply(obj for obj in small_service() if obj["metadata"]["name"] == D0)
        await c.until(lambda: c.published_ips() == _ips(c, P0) | _ips(c, D0), "both published")


async def test_lost_together_they_come_back_together() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        known = c.table()["generation"]
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.world.set_faults(c.node_of(f"{D0}-worker-0"), [CHIP])
        await c.recovered(P0)
        await c.recovered(D0)
        new_p, new_d = _ips(c, P0), _ips(c, D0)
        assert c.published_ips() == new_p | new_d
        for text in c.judge.tables("mindie-ms")[known:]:
            assert any(ip in text for ip in new_p) == any(ip in text for ip in new_d)


async def test_a_vanished_member_costs_one_attempt() -> None:
    async with cluster(settings=quick()) as c:
        await c.delete_pod(f"{P0}-worker-0")
        closed = await c.recovered(P0)
        assert len(c.ledger(P0)["attempts"]) == 1
        assert closed["closed_at_s"] - closed["opened_at_s"] < 20


async def test_two_instances_recover_side_by_side() -> None:
    async with cluster(servers=("p0", "p1", "d0"), nodes=10, settings=quick()) as c:
        p1 = "mindie-server-p1"
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.world.set_faults(c.node_of(f"{p1}-worker-0"), [CHIP])
        await c.recovered(P0)
        await c.recovered(p1)
        assert c.published() == {P0, p1, D0}
        assert len(c.judge.deleted) == 4


async def test_a_fault_under_a_replacement_starts_another_attempt() -> None:
    async with cluster(nodes=8, settings=quick(settle_s=20.0)) as c:
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        await c.until(lambda: (c.ledger(P0)["recovery"] or {}).get("phase") == "settle", "settling")
        await c.world.set_faults(c.node_of(f"{P0}-master-0"), [CHIP])
        closed = await c.recovered(P0)
        assert len(c.ledger(P0)["attempts"]) == 2
        assert len(closed["targets"]) == 4
        assert c.ledger(P0)["epoch"] == 1


async def test_the_taint_keeps_the_replacement_off_a_card_that_the_list_does_not_show_yet() -> None:
    async with cluster(settings=quick(), lag_s=(5.0, 5.0)) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.recovered(P0)
        assert all(c.node_of(name) != node for name in c.uids(P0))
        assert len(c.ledger(P0)["attempts"]) == 1


async def test_a_replacement_on_the_bad_card_is_moved_once_more() -> None:
    """A person takes our taint away while the scheduler's list still lags."""
    async with cluster(settings=quick(), lag_s=(20.0, 20.0)) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [CHIP])
        await c.until(lambda: TAINT in c.taints(node), "isolated")
        await c.untaint(node)
        closed = await c.recovered(P0)
        assert closed["outcome"] == "recovered"
        assert all(c.node_of(name) != node for name in c.uids(P0))


async def test_a_taint_that_a_person_removed_is_not_set_again() -> None:
    async with cluster(nodes=8, settings=quick()) as c:
        node = c.node_of(f"{P0}-master-0")
        await c.world.set_faults(node, [NOT_READY])
        await c.recovered(P0)
        assert TAINT in c.taints(node)
        await c.untaint(node)
        await c.until(lambda: c.events("IsolationOverruled"), "people are told")
        await c.quiet()
        assert TAINT not in c.taints(node)


async def test_an_owner_that_gave_up_parks_its_instance() -> None:
    async with cluster(settings=quick()) as c:
        await c.fail_job(D0)
        await c.until(lambda: c.ledger(D0)["parked"], "parked")
        park = c.ledger(D0)["parked"]
        assert park["reason"] == "OwnerGaveUp"
        assert "vcjob-fault-npu-cm" in park["message"]
        assert not c.judge.deleted
        await c.quiet()


def _ips(c: Cluster, job: str) -> set[str]:
    return {pod["status"].get("podIP", "") for pod in c.pods(job).values()}


def _retries(c: Cluster) -> str:
    found = c.get("ConfigMap", "vcjob-fault-npu-cm", "volcano-system")
    return str(found["data"]) if found else ""
