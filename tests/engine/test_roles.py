"""Active and standby with MS pods that really elect: who takes over, who is told, what is never restarted."""

from __future__ import annotations

import json

import pytest

from mindie_ha.model.settings import RoleSettings, Settings
from mindie_ha.sim.ms.settings import MsSettings

from .clusters import CHIP, NOT_READY, Cluster, cluster, quick
from .doors import Ours
from .pairs import CONTROLLER, COORDINATOR, service

pytestmark = pytest.mark.looptime
FIRST = tuple(f"mindie/{job}-master-0" for job in (CONTROLLER, COORDINATOR))
MS = MsSettings(serve_http=False, leads_first=FIRST)
LABEL = "mindie-ha.io/ms-state"


def with_roles(**roles: object) -> Settings:
    """Quick settings with these of roles."""
    return quick().model_copy(update={"roles": RoleSettings(**roles)})  # type: ignore[arg-type]


async def led(c: Cluster, job: str, pod: str) -> None:
    """Wait until the status calls exactly this pod active."""
    await c.until(lambda: c.active(job) == [f"{job}-{pod}"], f"{job}-{pod} is active")


def labels(c: Cluster, job: str) -> dict[str, str]:
    """What the pods of a job carry, by the end of their names."""
    found = {name.removeprefix(f"{job}-"): pod for name, pod in c.pods(job).items()}
    return {name: pod["metadata"].get("labels", {}).get(LABEL, "") for name, pod in sorted(found.items())}


@pytest.mark.parametrize("job", [COORDINATOR, CONTROLLER])
async def test_the_standby_takes_over_and_the_recovery_ends_by_role(job: str) -> None:
    async with cluster(service=service(), nodes=10, settings=quick(), ms=MS) as c:
        await led(c, job, "master-0")
        uid = c.uids()[f"{job}-worker-0"]
        await c.world.set_faults(c.node_of(f"{job}-master-0"), [NOT_READY])
        closed = await c.recovered(job)
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["pod"])
        assert len(c.active(job)) == 1
        assert c.uids()[f"{job}-worker-0"] == uid
        assert c.programs is not None
        [active] = c.active(job)
        assert c.programs.leaders()[f"mindie/{job}"] == c.uids()[active]
        await c.quiet()


async def test_the_only_decode_lost_leaves_the_coordinators_alone() -> None:
    async with cluster(service=service(), nodes=10, settings=quick(), ms=MS) as c:
        await led(c, COORDINATOR, "master-0")
        before = c.uids(COORDINATOR)
        await c.world.set_faults(c.node_of("mindie-server-d0-master-0"), [CHIP])
        await c.recovered("mindie-server-d0")
        await c.clock.sleep(60)
        assert c.uids(COORDINATOR) == before
        assert c.ledger(COORDINATOR)["closed"] == []
        assert not c.events("NoActive")


async def test_a_controller_job_rung_leaves_servers_alone_and_the_new_one_gets_boot_and_stream_table() -> (
    None
):
    async with cluster(service=service(), nodes=12, settings=quick(), ms=MS) as c:
        assert c.programs is not None
        await led(c, CONTROLLER, "master-0")
        before = c.uids()
        for pod in list(c.uids(CONTROLLER)):
            await c.world.set_faults(c.node_of(pod), [NOT_READY])
        closed = await c.recovered(CONTROLLER)
        assert (closed["outcome"], closed["rungs"]) == ("recovered", ["job"])
        replaced = {name for name, uid in c.uids().items() if before[name] != uid}
        assert replaced == set(c.uids(CONTROLLER))
        new = c.programs.leader("mindie", "mindie-ms")
        assert new is not None
        assert new.sandbox.uid not in before.values()
        boot = c.get("ConfigMap", "global-ranktable")
        assert boot is not None
        newest = json.loads(c.table()["text"])
        assert json.loads(boot["data"]["global_ranktable.json"]) == newest
        assert json.loads(new.received[0].text)["server_group_list"][1] == newest["server_group_list"][1]
        assert new.received[0].at_s - closed_phase(closed, "place") < 30


def closed_phase(closed: dict[str, object], name: str) -> float:
    """When a phase of a closed recovery ended, on the monotonic clock."""
    history = closed["history"]
    assert isinstance(history, list)
    ended: float = next(one["end_s"] for one in history if one["phase"] == name)
    return ended - 1_800_000_000


async def test_labels_follow_a_takeover_and_a_second_look_writes_nothing() -> None:
    async with cluster(service=service(), nodes=10, settings=with_roles(label_pods=True), ms=MS) as c:
        await c.until(
            lambda: labels(c, COORDINATOR) == {"master-0": "active", "worker-0": "standby"},
            "they are labelled",
        )
        await c.world.set_faults(c.node_of(f"{COORDINATOR}-master-0"), [NOT_READY])
        await c.recovered(COORDINATOR)
        await c.until(
            lambda: sorted(labels(c, COORDINATOR).values()) == ["active", "standby"], "labelled anew"
        )
        [active] = c.active(COORDINATOR)
        assert labels(c, COORDINATOR)[active.removeprefix(f"{COORDINATOR}-")] == "active"
        await c.quiet()


async def test_a_strip_that_the_api_refuses_withholds_the_label_until_it_is_done() -> None:
    settings = with_roles(label_pods=True)
    async with cluster(service=service(), nodes=10, settings=settings, ms=MS) as c:
        lost = f"{COORDINATOR}-master-0"
        await c.until(lambda: labels(c, COORDINATOR)["master-0"] == "active", "it is labelled")
        refusals = [Ours("PATCH", "pods", code=code, times=4) for code in (409, 503)]
        refusals.append(Ours("PATCH", "pods", reset=True, applied=True))
        for rule in refusals:
            c.server.disturbances.add(rule)
        await c.world.set_faults(c.node_of(lost), [NOT_READY])
        await c.recovered(COORDINATOR)
        await c.until(
            lambda: sorted(labels(c, COORDINATOR).values()) == ["active", "standby"], "labelled anew"
        )
        assert all(rule.hits for rule in refusals)


async def test_after_our_own_restart_everybody_is_known_again_and_nobody_restarted() -> None:
    async with cluster(service=service(), nodes=10, settings=quick(), ms=MS) as c:
        for job in (CONTROLLER, COORDINATOR):
            await led(c, job, "master-0")
        before = c.uids()
        await c.kill()
        await c.clock.sleep(5)
        await c.start(quick())
        for job in (CONTROLLER, COORDINATOR):
            await led(c, job, "master-0")
        assert c.uids() == before
        assert not c.events("NoActive")
        await c.quiet()


async def test_a_controller_that_gave_up_is_restarted_and_subscribes_again() -> None:
    ms = MsSettings(serve_http=False, leads_first=FIRST, connect_attempts=3)
    patient = quick(unverified_after_s=30).model_copy(update={"roles": RoleSettings(unsubscribed_s=120)})
    async with cluster(service=service(), nodes=10, settings=patient, ms=ms) as c:
        await led(c, CONTROLLER, "master-0")
        await c.until(lambda: c.ledger(CONTROLLER).get("subscribed_uid"), "it is remembered")
        before = c.uids()
        await c.kill()
        await c.exit_container(f"{CONTROLLER}-master-0", 0)
        await c.clock.sleep(90)  # whoever leads now finds nobody to connect to, and gives up
        await c.start(patient)
        await c.clock.sleep(110)
        assert c.uids() == before
        await c.until(lambda: c.active(CONTROLLER), "somebody subscribes again", deadline_s=600)
        await c.until(lambda: not c.ledger(CONTROLLER)["recovery"], "it is over")
        closed = c.ledger(CONTROLLER)["closed"]
        assert {(one["intent"]["kind"], one["intent"]["cause"]) for one in closed} == {
            ("condition", "ControllerUnsubscribed")
        }
        assert all(one["rungs"] == ["pod"] for one in closed)
        replaced = {name for name, uid in c.uids().items() if before[name] != uid}
        assert replaced <= set(c.uids(CONTROLLER))
