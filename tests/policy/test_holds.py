"""Which pause holds what, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.decisions import IsolateNode
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey, ScopeKey, job_key, service_key
from mindie_ha.model.pauses import PauseLedger, Pauses
from mindie_ha.model.recoveries import Phase
from mindie_ha.policy import holds
from mindie_ha.policy.planner import plan
from tests.policy.worlds import service

SVC, JOB = service_key("a", "x"), job_key(ObjectKey("a", "x"))


def ledger(*scopes: str, for_s: float | None = None, at_s: float = 100.0) -> PauseLedger:
    found = PauseLedger()
    for scope in scopes:
        wanted = holds.for_person(scope, text="t", person="ann", for_s=for_s, now_s=at_s)
        found = holds.paused(found, wanted, now_s=at_s)
    return found


@pytest.mark.parametrize(
    ("scope", "of", "on"),
    [
        pytest.param("cluster", SVC, True, id="cluster"),
        pytest.param("namespace/a", SVC, True, id="namespace"),
        pytest.param("namespace/b", SVC, False, id="other-namespace"),
        pytest.param("service/a/x", SVC, True, id="service"),
        pytest.param("service/a/x", JOB, True, id="job"),
        pytest.param("service/a/y", SVC, False, id="other-service"),
        pytest.param("service/b/x", SVC, False, id="namesake"),
    ],
)
def test_a_pause_covers_its_scope(scope: str, of: ScopeKey, on: bool) -> None:
    assert holds.judge(Pauses(ledger(scope)), of, now_s=101.0).on is on


@pytest.mark.parametrize(("now_s", "on"), [(100.0, True), (159.9, True), (160.0, False)])
def test_time_ends_a_pause(now_s: float, on: bool) -> None:
    hold = holds.judge(Pauses(ledger("cluster", for_s=60.0)), SVC, now_s=now_s)
    assert (hold.on, hold.wake_at_s) == (on, 160.0 if on else None)


@pytest.mark.parametrize("for_s", [1e18, float("inf")])
def test_a_record_with_an_absurd_end_is_a_pause_like_any_other(for_s: float) -> None:
    (pause,) = ledger("cluster").pauses
    found = PauseLedger(pauses=(pause.model_copy(update={"ends_at_s": for_s}),))
    assert "until 9999-12-31" in holds.judge(Pauses(found), SVC, now_s=101.0).message


def test_a_pause_that_ends_by_itself_says_when() -> None:
    timed, open_ended = ledger("cluster", for_s=60.0), ledger("namespace/a")
    both = timed.model_copy(update={"pauses": (*timed.pauses, *open_ended.pauses)})
    command = "`mindie-ha resume --cluster`"
    assert holds.judge(Pauses(timed), SVC, now_s=101.0).message == (
        f"paused (cluster by ann: t), until 1970-01-01 00:02:40Z or {command}"
    )
    assert holds.judge(Pauses(both), SVC, now_s=101.0).message.endswith(
        f"until {command}, `mindie-ha resume --namespace a`"
    )


def test_resuming_the_narrow_leaves_the_wide() -> None:
    found = holds.resumed(ledger("cluster", "service/a/x"), "service/a/x", person="bob", now_s=101.0)
    assert [one.scope for one in found.pauses] == ["cluster"]
    assert holds.judge(Pauses(found), SVC, now_s=101.0).on


def test_a_new_end_keeps_the_start() -> None:
    first = ledger("cluster")
    wanted = holds.for_person("cluster", text="t", person="bob", for_s=5.0, now_s=200.0)
    (one,) = holds.paused(first, wanted, now_s=200.0).pauses
    assert (one.since_s, one.ends_at_s, one.person) == (100.0, 205.0, "person:bob")


def test_an_unreadable_record_holds_everything() -> None:
    hold = holds.judge(Pauses(error="digest"), SVC, now_s=1.0)
    assert hold.on
    assert "unreadable: digest" in hold.message


@pytest.mark.parametrize(
    "scope", ["", "all", "cluster/x", "namespace/", "service/a", "service/a/", "service/a/b/c"]
)
def test_what_is_no_scope_is_refused(scope: str) -> None:
    with pytest.raises(InputError):
        holds.checked(scope)


def test_a_paused_fault_is_isolated_deletes_nothing_and_says_so() -> None:
    world = service()
    world.machines[world.pods_of("p0")[0].node].listed = None
    world.lists = False
    world.break_card(world.pods_of("p0")[0])
    view = replace(world.view(), pauses=Pauses(ledger("cluster", at_s=1.0)))
    found = plan(view, world.settings, world.now_s)
    (opened,) = [one for one in found.decisions if one.rule == "open"]
    assert [type(act) for act in opened.actions] == [IsolateNode]
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    table = world.table
    world.settle(for_s=30.0)
    recovery = world.job("p0").ledger.recovery
    assert recovery is not None
    assert (recovery.phase, recovery.condition) == (Phase.BACKOFF, "HeldByPause")
    assert not world.deleted
    assert {"RecoveryOpened", "HeldByPause"} <= {notice.reason for notice in world.notices}
    assert world.table == table  # who is not stopped yet stays in it


@pytest.mark.parametrize(
    ("person", "said"), [("bob", "bob resumed cluster, which ann had paused: t"), ("", "is over")]
)
def test_the_end_of_a_pause_is_told_where_it_held_something(person: str, said: str) -> None:
    world = service()
    now_s = world.now_s
    world.pauses = Pauses(ledger("cluster", at_s=now_s, for_s=100.0))
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=20.0)
    if person:
        after = holds.resumed(world.pauses.ledger, "cluster", person=person, now_s=world.now_s)
        world.pauses = Pauses(after)
    world.settle(until=lambda: world.closed("p0"))
    assert (world.deleted[0].key.name, world.now_s - now_s > 100.0) == ("p0-0", not person)
    [told] = {notice.message for notice in world.notices if notice.reason == "Resumed"}
    assert said in told


def test_a_fault_that_goes_away_while_paused_costs_nothing() -> None:
    world = service()
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    for _ in range(12):  # more often than attempts are allowed
        world.break_card(world.pods_of("p0")[0])
        world.settle(for_s=5.0)
        assert world.job("p0").ledger.recovery is not None
        world.machines[world.pods_of("p0")[0].node].bad.clear()
        world.settle(for_s=5.0)
        assert world.job("p0").ledger.recovery is None
    assert (world.deleted, world.job("p0").ledger.attempts) == ([], ())


def test_a_program_that_comes_back_while_paused_costs_no_retry() -> None:
    world = service()
    job = world.job("p0")
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-retry-times": "1"})
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    pod = world.pods_of("p0")[0]
    world.change(pod, waiting_reason="CrashLoopBackOff", restarts=3)
    world.settle(for_s=5.0)
    assert world.phase_of("p0") is Phase.BACKOFF
    world.change(pod, waiting_reason="")
    world.settle(for_s=5.0)
    assert (world.closed("p0"), job.ledger.software_retries_spent) == (True, 0)
    world.pauses = Pauses()
    world.change(pod, waiting_reason="CrashLoopBackOff", restarts=4)
    world.settle(for_s=5.0)
    assert (pod.uid in world.pods, job.ledger.software_retries_spent) == (False, 1)


def test_a_pause_holds_deletions_of_which_none_was_accepted() -> None:
    world = service()
    world.accepts = False
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=20.0)
    sent = len(world.deleted)
    assert (world.phase_of("p0"), bool(sent)) == (Phase.STOP, True)
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    world.settle(for_s=5.0)
    world.accepts = True
    world.settle(for_s=60.0)
    assert (world.phase_of("p0"), len(world.deleted)) == (Phase.BACKOFF, sent)
    world.pauses = Pauses()
    world.settle(until=lambda: world.closed("p0"))
    assert world.job("p0").ledger.closed[-1].rungs == ("job",)


def test_a_pause_lets_half_an_instance_go() -> None:
    world = service()
    world.break_card(world.pods_of("p0")[0])
    world.accepts = False
    world.settle(for_s=5.0)
    first, second = world.pods_of("p0")
    world.change(first, terminating_since_s=world.now_s, grace_s=0)
    world.accepts = True
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    world.settle(until=lambda: world.closed("p0"))
    assert second.uid not in world.pods


def test_after_a_pause_the_table_goes_first_where_pods_leave_with_grace() -> None:
    world = service()
    job = world.job("p0")
    job.workload = replace(job.workload, labels={**job.workload.labels, "fault-scheduling": "grace"})
    world.pauses = Pauses(ledger("cluster", at_s=1.0))
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=30.0)
    shown = len(world.groups())
    world.pauses = Pauses()
    resumed_s = world.now_s
    world.look()
    world.look()
    assert len(world.groups()) == shown - 1
    assert not world.deleted
    world.settle(until=lambda: bool(world.deleted), for_s=30.0)
    assert 7.0 <= world.now_s - resumed_s < 9.0
