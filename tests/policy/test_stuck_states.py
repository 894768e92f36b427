"""States in which nothing moves: each ends at its deadline with a named step, and takes nobody else along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.pods import PodPhase
from mindie_ha.model.recoveries import Outcome, Phase
from mindie_ha.model.settings import Settings
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import World, service

QUICK = Settings.model_validate(
    {"phases": {"settle_s": 5.0, "gone_s": 10.0}, "budgets": {"max_attempts": 3, "backoff_max_s": 20.0}}
)
STUCK = "example.com/never"


def stuck(world: World, name: str) -> tuple[str, set[str]]:
    """A card under the first pod fails and a finalizer keeps it; its UID, and those of its siblings."""
    first, *rest = world.pods_of(name)
    world.change(first, finalizers=(STUCK,))
    world.break_card(first)
    return first.uid, {pod.uid for pod in rest}


def test_attempts_against_an_endless_finalizer_leave_the_new_siblings_alone() -> None:
    world = service(settings=QUICK)
    first, siblings = stuck(world, "p0")
    world.settle(until=lambda: world.job("p0").ledger.parked is not None)
    park = world.job("p0").ledger.parked
    assert park is not None
    assert (park.reason, STUCK in park.message) == ("LadderSpent", True)
    assert {item.uid for item in world.deleted} == {first, *siblings}
    assert world.pods_of("p0")[1].alive


def test_the_recovery_goes_on_when_the_finalizer_is_taken_away() -> None:
    world = service(settings=QUICK)
    first, _ = stuck(world, "p0")
    world.settle(until=lambda: len(world.job("p0").ledger.attempts) == 2)
    waiting = world.pods_of("p0")[1].uid
    world.change(world.pods[first], finalizers=())  # type: ignore[index]
    world.settle(until=lambda: world.closed("p0"))
    assert world.job("p0").ledger.closed[-1].outcome is Outcome.RECOVERED
    assert waiting in {pod.uid for pod in world.pods_of("p0")}


def test_a_new_sibling_that_is_hit_meanwhile_is_replaced_all_the_same() -> None:
    world = service(settings=QUICK)
    first, _ = stuck(world, "p0")
    world.settle(until=lambda: world.phase_of("p0") is Phase.GONE)
    world.settle(for_s=3.0)
    new = world.pods_of("p0")[1]
    world.put(new, "n5", ["Ascend910-0"])
    world.lose_node("n5")
    world.now_s += 15.0
    world.settle(until=lambda: new.uid in {item.uid for item in world.deleted}, for_s=60.0)
    world.change(world.pods[first], finalizers=())  # type: ignore[index]
    world.settle(until=lambda: world.closed("p0"))


def test_without_a_peer_that_serves_a_stuck_pod_does_lead_to_the_job_and_a_park() -> None:
    world = pair(settings=QUICK)
    world.judges.append(lambda plan: spares_the_last(world, plan))
    failed, peer = world.pods_of("ms-coordinator")
    world.change(failed, finalizers=(STUCK,))
    world.lose_node(failed.node)
    world.now_s += 15.0
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.GONE)
    world.lose_node(peer.node)
    world.now_s += 15.0
    world.settle(until=lambda: world.job("ms-coordinator").ledger.parked is not None)
    closed = world.job("ms-coordinator").ledger.closed[-1]
    assert (closed.rungs, closed.outcome) == (("pod", "job"), Outcome.PARKED)
    assert STUCK in closed.summary


@pytest.mark.parametrize("phase", [PodPhase.PENDING, PodPhase.RUNNING], ids=["image-pull", "crash-loop"])
def test_a_replacement_that_never_runs_turns_to_the_job_and_then_parks(phase: PodPhase) -> None:
    settings = QUICK.model_copy(update={"phases": QUICK.phases.model_copy(update={"startup_s": 40.0})})
    world = pair(settings=settings)
    failed, peer = world.pods_of("ms-coordinator")
    world.lose_node(failed.node)
    world.now_s += 15.0

    def never_well() -> bool:
        for pod in world.pods_of("ms-coordinator"):
            if pod.uid not in (failed.uid, peer.uid) and pod.phase is PodPhase.RUNNING and pod.ready:
                reason = "ImagePullBackOff" if phase is PodPhase.PENDING else "CrashLoopBackOff"
                world.change(pod, phase=phase, ready=False, waiting_reason=reason)  # it has an address
        return world.job("ms-coordinator").ledger.parked is not None

    starts, world.starts = world.starts, False  # started by hand, so that it fails at once

    def turn() -> bool:
        world._run()
        return never_well()

    world.settle(until=turn)
    world.starts = starts
    ledger = world.job("ms-coordinator").ledger
    assert ledger.parked is not None
    assert ledger.parked.reason == "LadderSpent"
    assert ledger.closed[-1].rungs == ("pod", "job")


def test_an_owner_that_gave_up_parks_from_any_phase() -> None:
    for phase in (Phase.ISOLATE, Phase.GONE, Phase.PLACE, Phase.SETTLE):
        world = service(settings=QUICK)
        if phase is Phase.PLACE:
            world.schedules = False
        pod = world.pods_of("p0")[0]
        world.ends = phase is not Phase.GONE
        if phase is Phase.GONE:
            world.change(pod, finalizers=(STUCK,))
        world.break_card(pod)
        if phase is Phase.ISOLATE:
            world.look(cut=True)
        else:
            world.settle(until=lambda: world.phase_of("p0") is phase)  # noqa: B023 - called at once
        assert world.phase_of("p0") is phase
        job = world.job("p0")
        job.workload = replace(job.workload, failed=True, failed_message="limit reached")
        world.settle(until=lambda: job.ledger.parked is not None, for_s=30.0)  # noqa: B023
        assert job.ledger.parked is not None
        assert job.ledger.parked.reason == "OwnerGaveUp"


def test_a_crash_loop_beside_a_known_active_peer_is_not_well() -> None:
    """Whatever is known of roles: its phase is Running all along, and its container is not."""
    world = pair(settings=QUICK)
    failed, peer = world.pods_of("ms-coordinator")
    world.lose_node(failed.node)
    world.now_s += 15.0
    world.settle(until=lambda: world.phase_of("ms-coordinator") is Phase.SETTLE)
    new = world.pods_of("ms-coordinator")[0]
    world.change(new, waiting_reason="CrashLoopBackOff", ready=False)
    world.settle(for_s=60.0)
    assert world.phase_of("ms-coordinator") is Phase.SETTLE
    assert any("is not out of CrashLoopBackOff yet" in item.sentence for item in world.decisions)
    assert peer.uid not in {item.uid for item in world.deleted}
