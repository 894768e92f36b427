"""A recovery that a person asks for: what is refused, what is recorded, and what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.errors import Conflict, InputError
from mindie_ha.model.faults import Cause
from mindie_ha.model.pauses import Pause, PauseLedger, Pauses
from mindie_ha.model.recoveries import IntentKind, Phase
from mindie_ha.model.settings import BudgetSettings, PhaseSettings, Settings
from mindie_ha.policy import asking, records, requests
from mindie_ha.policy.asking import Wish
from tests.policy.pairs import pair, spares_the_last
from tests.policy.worlds import START_S, World

CONTROLLER = "ms-controller"
SETTINGS = Settings(phases=PhaseSettings(settle_s=5, unverified_after_s=30))
ALL = Wish(person="ann", text="try it")


def servers(settings: Settings = SETTINGS) -> World:
    """Two instances that serve."""
    world = World(settings=settings)
    world.add("p")
    world.add("d")
    world.start()
    return world


def ask(world: World, name: str = "p", wish: Wish = ALL) -> asking.Granted:
    """As the desk does: judged, then recorded."""
    scope = world.view()
    view = next(each for each in scope.workloads if each.workload.key.name == name)
    granted = asking.judge(scope, view, wish, settings=world.settings, now_s=world.now_s)
    world.job(name).ledger = granted.ledger
    return granted


def uids(world: World, name: str) -> list[str]:
    return [pod.uid for pod in world.pods_of(name)]


def told(world: World, reason: str) -> list[str]:
    return [notice.message for notice in world.notices if notice.reason == reason]


def test_a_healthy_instance_is_rebuilt_on_request_and_nothing_is_paid() -> None:
    world = servers()
    before, others = uids(world, "p"), uids(world, "d")
    granted = ask(world)
    assert (granted.rung, granted.pods, granted.epoch) == ("job", ("p-0", "p-1"), 1)
    world.settle(until=lambda: world.closed("p"))
    ledger = world.job("p").ledger
    (closed,) = ledger.closed
    assert (closed.intent.kind, closed.intent.cause) == (IntentKind.REQUEST, Cause.REQUESTED)
    assert closed.intent.summary == "Requested: ann asked: try it"
    assert not set(before) & set(uids(world, "p"))
    assert uids(world, "d") == others
    assert (ledger.request, ledger.software_retries_spent) == (None, 0)
    assert told(world, "RecoveryRequested") == ["mindie/p: ann asked for a recovery of 2 pods: try it"]
    count = len(world.deleted)
    world.settle(for_s=120)
    assert len(world.deleted) == count, "once"


def test_one_pod_of_two_is_replaced_and_its_peer_stays() -> None:
    world = pair(label="on", settings=SETTINGS, nodes=10)
    world.judges.append(lambda plan: spares_the_last(world, plan))
    first, second = world.pods_of(CONTROLLER)
    granted = ask(world, CONTROLLER, Wish("ann", "odd", pods=(first.key.name,)))
    assert granted.rung == "pod"
    world.settle(until=lambda: world.closed(CONTROLLER))
    assert world.job(CONTROLLER).ledger.closed[-1].rungs == ("pod",)
    assert second.uid in uids(world, CONTROLLER)
    assert first.uid not in uids(world, CONTROLLER)


def test_the_job_rung_takes_both_at_once() -> None:
    world = pair(label="on", settings=SETTINGS, nodes=10)
    assert ask(world, CONTROLLER, Wish("ann", "odd", rung="job")).rung == "job"
    world.settle(until=lambda: world.closed(CONTROLLER))
    assert world.job(CONTROLLER).ledger.closed[-1].rungs == ("job",)


def test_the_last_peer_is_never_taken_by_the_pod_rung() -> None:
    world = pair(label="on", settings=SETTINGS, nodes=10)
    names = tuple(pod.key.name for pod in world.pods_of(CONTROLLER))
    with pytest.raises(Conflict, match="not by the pod rung: no peer that runs"):
        ask(world, CONTROLLER, Wish("ann", "odd", pods=names))


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        pytest.param(Wish("a b", "x"), "no user name", id="person"),
        pytest.param(Wish("ann", " "), "a reason is needed", id="reason"),
        pytest.param(Wish("ann", "x", rung="block"), "no rung", id="rung"),
        pytest.param(Wish("ann", "x", pods=("p-0",)), "always restarts as a whole", id="server-pods"),
        pytest.param(Wish("ann", "x", rung="pod"), "always restarts as a whole", id="server-rung"),
    ],
)
def test_what_makes_no_sense_is_refused(wish: Wish, what: str) -> None:
    world = servers()
    with pytest.raises(InputError, match=what):
        ask(world, "p", wish)
    assert world.job("p").ledger.request is None


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        pytest.param(Wish("ann", "x", rung="pod"), "needs the pods", id="no-pods"),
        pytest.param(Wish("ann", "x", rung="job", pods=("ms-controller-0",)), "takes all", id="job-pods"),
        pytest.param(Wish("ann", "x", pods=("p-0",)), "no pod of mindie/ms-controller", id="strange"),
    ],
)
def test_a_controller_is_asked_for_as_a_whole_or_by_its_pods(wish: Wish, what: str) -> None:
    with pytest.raises(InputError, match=what):
        ask(pair(label="on", settings=SETTINGS, nodes=10), CONTROLLER, wish)


def test_what_cannot_be_is_refused_in_one_sentence() -> None:
    world = servers()
    job = world.job("p")
    ask(world)
    with pytest.raises(Conflict, match="is waiting for the recovery that ann asked for: try it"):
        ask(world)
    world.settle(for_s=2)
    with pytest.raises(Conflict, match="has recovery 1 open already: Requested: ann asked: try it"):
        ask(world)
    world.settle(until=lambda: world.closed("p"))
    job.ledger = records.parked(job.ledger, reason="LadderSpent", message="m", now_s=world.now_s)
    with pytest.raises(Conflict, match=r"is parked \(LadderSpent\); `mindie-ha reset mindie/p`"):
        ask(world)
    job.ledger = records.changed(job.ledger, parked=None)
    job.workload = replace(job.workload, labels={})
    with pytest.raises(Conflict, match="is not ours: `mindie-ha adopt mindie/p`"):
        ask(world)
    job.workload = replace(job.workload, labels={"fault-scheduling": "force"}, deleting=True)
    with pytest.raises(Conflict, match="is being deleted"):
        ask(world)


def test_a_pause_holds_what_was_asked_for() -> None:
    world = servers()
    pause = Pause(scope="cluster", text="work", person="person:bob", since_s=START_S)
    world.pauses = Pauses(PauseLedger(pauses=(pause,)))
    assert "paused" in ask(world).says
    world.settle(for_s=120)
    assert not world.deleted
    assert world.phase_of("p") is Phase.BACKOFF
    world.pauses = Pauses()
    world.settle(until=lambda: world.closed("p"))
    assert world.deleted


def test_a_fault_before_the_first_deletion_takes_the_recovery_over() -> None:
    world = servers()
    pause = Pause(scope="cluster", text="work", person="person:bob", since_s=START_S)
    world.pauses = Pauses(PauseLedger(pauses=(pause,)))
    ask(world)
    world.settle(for_s=5)
    world.break_card(world.pods_of("p")[0])
    world.settle(for_s=5)
    recovery = world.job("p").ledger.recovery
    assert recovery is not None
    assert (recovery.epoch, recovery.intent.cause) == (1, Cause.CHIP_UNHEALTHY)
    world.pauses = Pauses()
    world.settle(until=lambda: world.closed("p"))
    ledger = world.job("p").ledger
    assert [one.intent.kind for one in ledger.closed] == [IntentKind.FAULT]
    assert ledger.request is None


def test_attempts_that_are_spent_refuse_a_request_instead_of_parking() -> None:
    world = servers(SETTINGS.model_copy(update={"budgets": BudgetSettings(max_attempts=1)}))
    ask(world)
    world.settle(until=lambda: world.closed("p"))
    with pytest.raises(Conflict, match="1 attempts without 600 stable seconds"):
        ask(world)
    assert world.job("p").ledger.parked is None


def test_a_word_that_nobody_could_answer_in_time_is_forgotten() -> None:
    world = servers()
    job, before = world.job("p"), uids(world, "p")
    ask(world)
    ours = job.workload
    job.workload = replace(ours, labels={})
    world.settle(for_s=30)
    world.now_s += requests.EXPIRES_S
    job.workload = ours
    world.settle(for_s=30)
    assert uids(world, "p") == before
    assert job.ledger.request is None


def test_a_word_whose_pods_are_gone_is_forgotten() -> None:
    world = servers()
    ask(world)
    request = world.job("p").ledger.request
    assert request is not None
    gone = request.model_copy(update={"pods": ("gone",)})
    world.job("p").ledger = records.changed(world.job("p").ledger, request=gone)
    world.settle(for_s=5)
    assert world.job("p").ledger.request is None
    assert not world.deleted
