"""Each judge stays silent on a good run and complains about the one thing that a test breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mindie_ha.demo.expectations import Expect
from mindie_ha.demo.judging import judge
from mindie_ha.demo.observations import (
    Delivery,
    EventSeen,
    Harm,
    Injected,
    InstanceTableSeen,
    NodeSeen,
    Observations,
    Write,
)
from tests.demo import seen as run
from tests.demo.seen import CLOSED_S, CONTROLLER, D0, P0, a_good_run

EXPECT = Expect.model_validate({"recoveries": [{"workload": P0, "cause": "ChipUnhealthy"}], "tables": 3})


def complaints(seen: Observations, expect: Expect = EXPECT) -> dict[str, tuple[str, ...]]:
    return {check.rule: check.complaints for check in judge(seen, expect).checks if not check.kept}


def test_a_good_run_is_ok() -> None:
    verdict = judge(a_good_run(), EXPECT)

    assert complaints(a_good_run()) == {}
    assert verdict.ok
    assert len(verdict.checks) == 17


def deleted_beside_the_target(seen: Observations) -> None:
    seen.pods["d-old"].deleted_s, seen.pods["d-old"].deleted_version = 41.0, 121
    seen.writes.append(Write(41.0, "delete", "pods", "mindie/d0-master-0", "d-old", "mindie-ha", 200))


def deleted_before_it_was_recorded(seen: Observations) -> None:
    seen.pods["p-old"].deleted_version = 109


def deleted_before_the_attempt(seen: Observations) -> None:
    seen.ledgers[0] = run.ledger(110, 40.5, P0, recovery=run.recovery("p-old", attempts={}))


def deleted_a_collection(seen: Observations) -> None:
    seen.writes.append(Write(41.0, "deletecollection", "pods", "mindie", "", "mindie-ha", 200))


def opened_twice(seen: Observations) -> None:
    seen.ledgers.insert(1, run.ledger(115, 41.0, P0, epoch=2, recovery=run.recovery("p-old", epoch=2)))


def budget_grew_back(seen: Observations) -> None:
    seen.ledgers[0].body["software_retries_spent"] = 2


def lost_every_server(seen: Observations) -> None:
    empty = run.table(155, 46.0, 4, run.table_text())
    seen.tables.append(empty)
    seen.deliveries += [
        Delivery(46.1, channel, peer, empty.digest, empty.text) for peer, channel in run.CHANNELS
    ]


def delivered_something_unknown(seen: Observations) -> None:
    text = run.table_text((2, "127.1.0.3"))
    seen.deliveries.insert(0, Delivery(10.0, "grpc", CONTROLLER, run.digest(text), text))


def went_back_to_an_older_table(seen: Observations) -> None:
    seen.deliveries.append(replace(seen.deliveries[0], at_s=50.0))


def changed_an_id(seen: Observations) -> None:
    last = run.table_text((4, "127.1.0.3"), (3, "127.1.0.2"))
    seen.tables[-1] = run.table(150, 45.0, 3, last)
    seen.deliveries = [
        each if each.at_s < 45.0 else replace(each, digest=run.digest(last), text=last)
        for each in seen.deliveries
    ]


def placed_on_the_faulty_card(seen: Observations) -> None:
    seen.pods["p-new"].node, seen.pods["p-new"].devices = "node-1", ("Ascend910-3",)


def tainted_without_a_record(seen: Observations) -> None:
    seen.isolations.clear()


def isolated_without_undo(seen: Observations) -> None:
    seen.isolations[0].entries[0]["undo"] = ""


def released_a_lost_node(seen: Observations) -> None:
    seen.faults.append(Injected(40.0, "node-1", "", "NotReady", "", kind=Harm.NODE_LOST))


def placed_on_a_lost_node(seen: Observations) -> None:
    seen.faults.append(Injected(41.0, "node-2", "", "NotReady", "", kind=Harm.NODE_LOST))


def placed_on_a_broken_switch(seen: Observations) -> None:
    code = "[0x08520003,na,npu,na]"
    seen.faults.append(Injected(41.0, "node-2", "", code, "", level="Separate", kind=Harm.SWITCH))


def removed_a_foreign_taint(seen: Observations) -> None:
    seen.nodes.insert(0, NodeSeen(1.0, 1, "node-1", False, frozenset({"maintenance"})))


def wrote_in_the_quiet_window(seen: Observations) -> None:
    seen.writes.append(Write(100.0, "patch", "nodes", "node-1", "n", "mindie-ha", 200))


def never_got_quiet(seen: Observations) -> None:
    seen.quiet_from_s = None


def left_a_pod_unready(seen: Observations) -> None:
    seen.pods["d-old"].ready = False


def left_a_recovery_open(seen: Observations) -> None:
    seen.ledgers.pop()


def left_a_subscriber_behind(seen: Observations) -> None:
    seen.deliveries = [each for each in seen.deliveries if each.peer != CONTROLLER or each.at_s < 45.0]


def replaced_one_pod_too_few(seen: Observations) -> None:
    seen.pods["p-old"].deleted_s, seen.pods["p-old"].deleted_version = None, None


def made_one_table_too_many(seen: Observations) -> None:
    seen.tables.insert(2, run.table(140, 44.0, 3, run.table_text((3, "127.1.0.9"))))
    seen.tables[3] = replace(seen.tables[3], generation=4)


def operator_gave_up(seen: Observations) -> None:
    seen.jobs[D0].failed = "a pod failed"


def paid_for_a_hardware_fault(seen: Observations) -> None:
    seen.ledgers[-1].body["software_retries_spent"] = 1


def recovered_another(seen: Observations) -> None:
    other = run.recovery(epoch=1, rungs=["job"], outcome="recovered", closed_at_s=CLOSED_S)
    seen.ledgers.append(run.ledger(199, CLOSED_S, D0, closed=[other]))


PLANTED: dict[Callable[[Observations], None], str] = {
    deleted_beside_the_target: "only recorded targets were deleted",
    deleted_before_it_was_recorded: "only recorded targets were deleted",
    deleted_before_the_attempt: "only recorded targets were deleted",
    deleted_a_collection: "only recorded targets were deleted",
    opened_twice: "one recovery at a time for a workload; no budget grew back",
    budget_grew_back: "one recovery at a time for a workload; no budget grew back",
    lost_every_server: "every table that arrived is valid and remembered",
    delivered_something_unknown: "every table that arrived is valid and remembered",
    went_back_to_an_older_table: "nobody got an older table",
    changed_an_id: "group ids are stable",
    placed_on_the_faulty_card: "nothing new runs on broken hardware",
    released_a_lost_node: "every isolation has an owner, a reason and an undo",
    placed_on_a_lost_node: "nothing new runs on broken hardware",
    placed_on_a_broken_switch: "nothing new runs on broken hardware",
    tainted_without_a_record: "every isolation has an owner, a reason and an undo",
    isolated_without_undo: "every isolation has an owner, a reason and an undo",
    removed_a_foreign_taint: "every isolation has an owner, a reason and an undo",
    wrote_in_the_quiet_window: "nothing is written while nothing is wrong",
    never_got_quiet: "nothing is written while nothing is wrong",
    left_a_pod_unready: "everything runs again, or is parked",
    left_a_recovery_open: "everything runs again, or is parked",
    left_a_subscriber_behind: "everybody has the newest table",
    replaced_one_pod_too_few: "every pod of a recovered workload was replaced",
    made_one_table_too_many: "the rank tables are as expected",
    operator_gave_up: "no AscendJob was given up that was not to be",
    paid_for_a_hardware_fault: "software retries were paid exactly",
    recovered_another: "the expected recoveries took place, and no others",
}


@pytest.mark.parametrize(("plant", "rule"), PLANTED.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_a_planted_violation_is_seen(plant: Callable[[Observations], None], rule: str) -> None:
    seen = a_good_run()
    plant(seen)

    assert rule in complaints(seen)


def test_a_deleted_bystander_counts_as_touched() -> None:
    seen = a_good_run()
    deleted_beside_the_target(seen)

    assert complaints(seen)["no other pod was touched"] == (
        "mindie/d0-master-0 (d-old) was deleted at 41.0 s",
    )


def test_a_deletion_by_somebody_else_is_not_ours() -> None:
    seen = a_good_run()
    seen.writes = [replace(each, agent="volcano") for each in seen.writes]
    seen.ledgers[0] = run.ledger(110, 40.5, P0, recovery=run.recovery())

    assert "only recorded targets were deleted" not in complaints(seen)


def test_a_deletion_that_came_second_is_not_judged() -> None:
    seen = a_good_run()
    seen.writes.insert(0, replace(seen.writes[0], agent="volcano"))
    seen.pods["p-old"].deleted_version = 109

    assert complaints(seen) == {}


HELD = EXPECT.model_copy(update={"held": Expect.model_validate(
    {"recoveries": [], "held": [{"instance": P0, "until": D0}]}
).held})  # fmt: skip


def test_a_new_instance_in_a_table_before_its_peer_is_seen() -> None:
    seen = a_good_run()

    assert any("without those of mindie/d0" in each for each in complaints(seen, HELD)[
        "a new instance was held back until its peer was there"
    ])  # fmt: skip


def test_a_hold_that_was_never_needed_is_seen() -> None:
    seen = a_good_run()
    seen.instance_tables.insert(0, InstanceTableSeen(43.0, D0, frozenset({"d-old"})))

    assert any("nothing had to be held" in each for each in complaints(seen, HELD)[
        "a new instance was held back until its peer was there"
    ])  # fmt: skip


def test_what_the_status_must_say_is_looked_for() -> None:
    expect = EXPECT.model_copy(update={"status_said": ("the last table is kept",)})
    seen = a_good_run()
    assert "the status said so" in complaints(seen, expect)

    seen.said["mindie/ms: the last table is kept until p0 is back"] = 42.0
    assert complaints(seen, expect) == {}


def expecting(**wanted: object) -> Expect:
    asked = Expect.model_validate({"recoveries": [], **wanted})
    return EXPECT.model_copy(update={name: getattr(asked, name) for name in wanted})


def test_a_mild_fault_of_a_switch_closes_no_node() -> None:
    seen = a_good_run()
    code = "[0x00f10509,132332,npu,na]"
    seen.faults.append(Injected(41.0, "node-2", "", code, "", level="SubHealthFault", kind=Harm.SWITCH))

    assert complaints(seen) == {}


@pytest.mark.parametrize(
    ("pod", "story", "said"),
    [
        ("mindie/p0-master-0", "released", ()),
        ("mindie/p0-master-0", "never", ("our taint on node-1: released, expected never",)),
        ("mindie/p0-master-0", "overruled", ("our taint on node-1: released, expected overruled",)),
        ("mindie/d0-master-0", "never", ()),
        ("mindie/d0-master-0", "standing", ("our taint on node-3: never, expected standing",)),
        ("mindie/nobody", "never", ("mindie/nobody was on no node at the first fault",)),
    ],
)
def test_what_became_of_a_taint_is_looked_at(pod: str, story: str, said: tuple[str, ...]) -> None:
    expect = expecting(taints=[{"was_under": pod, "story": story}])

    assert complaints(a_good_run(), expect).get("our taints came and went as expected", ()) == said


def test_a_person_may_take_the_taint_off_a_lost_node_and_we_may_not() -> None:
    seen = a_good_run()
    seen.faults.append(Injected(40.0, "node-1", "", "NotReady", "", kind=Harm.NODE_LOST))
    seen.by_person.add(seen.nodes[-1].version)
    expect = expecting(taints=[{"was_under": "mindie/p0-master-0", "story": "overruled"}])
    assert complaints(seen, expect)["our taints came and went as expected"] == (
        "that a person took our taint off node-1 was not recorded",
    )

    [entry] = seen.isolations[0].entries
    seen.isolations.append(replace(seen.isolations[0], entries=({**entry, "overruled_at_s": 44.0},)))
    assert complaints(seen, expect) == {}


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"reason": "NodeIsolated", "times": 3}, ()),
        ({"reason": "NodeIsolated", "about": "Node", "times": 3}, ()),
        ({"reason": "NodeIsolated"}, ("Event NodeIsolated: 3 times, expected 1",)),
        ({"reason": "NodeIsolated", "about": "Pod", "times": 0}, ()),
        (
            {"reason": "HeldByBrake", "about": "AscendJob"},
            ("Event HeldByBrake about a AscendJob: 0 times, expected 1",),
        ),
    ],
    ids=["all", "of-a-kind", "too-often", "of-another-kind", "never"],
)
def test_events_are_counted_with_their_repetitions(event: dict[str, object], said: tuple[str, ...]) -> None:
    seen = a_good_run()
    seen.events = {
        "a": EventSeen("NodeIsolated", "Node", "node-1", "node-1 is isolated", 2),
        "b": EventSeen("NodeIsolated", "Node", "node-2", "node-2 is isolated", 1),
    }

    assert (
        complaints(seen, expecting(events=[event])).get("people were told as often as expected", ()) == said
    )


def test_nothing_deleted_means_not_even_asked_for() -> None:
    seen = a_good_run()

    assert complaints(seen, expecting(nothing_deleted=True))["nothing was deleted"] == (
        "we asked to delete mindie/p0-master-0 at 41.0 s, 200",
        "mindie/p0-master-0 (p-old) was deleted at 41.0 s",
    )


def test_a_recovery_that_came_too_early_is_seen() -> None:
    expect = expecting()
    late = expect.recoveries[0].model_copy(update={"after_s": 15.0})
    said = complaints(a_good_run(), expect.model_copy(update={"recoveries": (late,)}))

    assert said["the expected recoveries took place, and no others"] == (
        "mindie/p0: opened 0.5 s after the first fault, not 15 s",
    )


def test_a_deletion_that_came_too_early_is_seen() -> None:
    late = EXPECT.recoveries[0].model_copy(update={"deletes_after_s": 15.0})
    said = complaints(a_good_run(), EXPECT.model_copy(update={"recoveries": (late,)}))

    assert said["the expected recoveries took place, and no others"] == (
        "mindie/p0: deleted 1.0 s after it, not 15 s",
    )


@pytest.mark.parametrize(("at_once", "kept"), [(1, True), (2, False)])
def test_recoveries_at_the_same_time_are_counted(at_once: int, kept: bool) -> None:
    said = complaints(a_good_run(), expecting(at_once=at_once))

    assert (said == {}) is kept


def test_a_peer_that_was_to_stay_and_went_is_named() -> None:
    only = expecting().recoveries[0].model_copy(update={"only": ("mindie/another",)})
    said = complaints(a_good_run(), EXPECT.model_copy(update={"recoveries": (only,)}))

    assert said["every pod of a recovered workload was replaced"][0] == (
        "mindie/p0-master-0 (p-old) was deleted at 41.0 s, a peer that was to stay"
    )


def test_a_state_that_the_status_never_showed_is_named() -> None:
    seen = a_good_run()
    seen.states = {P0: {"ok", "recovering"}}

    assert complaints(seen, expecting(states={P0: ["ok", "held"], D0: ["ok"]}))[
        "the status showed these states"
    ] == (
        "the status never showed mindie/p0 held, but ok, recovering",
        "the status never showed mindie/d0 ok, but nothing",
    )


def test_a_wait_that_ended_in_vain_is_a_complaint() -> None:
    seen = a_good_run()
    seen.missed = ["step 2: it was not seen in time"]

    assert complaints(seen) == {"what the steps waited for came": ("step 2: it was not seen in time",)}
