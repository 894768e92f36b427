"""Entries of a node's ledger: what people, recoveries and the frequency rule do to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.decisions import DiscountIsolation, NodeDecision
from mindie_ha.model.errors import InputError
from mindie_ha.model.ledgers import MAX_PAST, Isolation, NodeLedger, PastIsolation
from mindie_ha.model.nodes import TAINT_ISOLATED, DeviceReport, ListedDevices, Node, Taint
from mindie_ha.model.settings import ChipIsolation, FaultSettings, Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy import isolating
from mindie_ha.policy.isolations import plan_node
from tests.policy.worlds import World

NOW_S = 1_000_000.0
CARD = "Ascend910-3"
EMPTY = NodeLedger(node="n0", node_uid="u")
OURS = (Taint(TAINT_ISOLATED, "NoSchedule"),)


def fault(
    epoch: int, *, at_s: float, card: str = CARD, code: str = "80E18005", job: str = "ns/p0"
) -> Isolation:
    return Isolation(
        id=f"ChipUnhealthy:{card}",
        device=card,
        reason="ChipUnhealthy",
        codes=(code,),
        wanted_by=(f"recovery:{job}#{epoch}",),
        until="listed",
        since_s=at_s,
        undo="",
    )


@pytest.mark.parametrize(
    ("capacity", "device", "words"),
    [
        pytest.param(8, "Ascend910-33", "has no card Ascend910-33, but Ascend910-0 to Ascend910-7", id="33"),
        pytest.param(8, "Ascend910-8", "Ascend910-0 to Ascend910-7", id="first-beyond"),
        pytest.param(8, "Ascend910-7", "", id="last"),
        pytest.param(7, "Ascend910-7", "", id="one-is-lost"),
        pytest.param(16, "Ascend910-15", "", id="a3"),
        pytest.param(16, "Ascend910-16", "Ascend910-0 to Ascend910-15", id="beyond-a3"),
        pytest.param(0, "Ascend910-33", "", id="not-reported"),
        pytest.param(8, "", "", id="node"),
    ],
)
def test_a_card_that_the_server_cannot_have_is_refused(capacity: int, device: str, words: str) -> None:
    node = Node(name="n0", capacity_npu=capacity)
    if not words:
        isolating.card_of(node, device)
        return
    with pytest.raises(InputError, match=words):
        isolating.card_of(node, device)


def forget(ledger: NodeLedger) -> NodeLedger:
    """The isolation is over; its past stays."""
    return ledger.model_copy(update={"isolations": ()})


def failed(times: int, *, every_s: float = 600.0) -> NodeLedger:
    """A card that was isolated so often until now."""
    ledger = EMPTY
    for number in range(times):
        at_s = NOW_S - (times - 1 - number) * every_s
        ledger = forget(isolating.merged(ledger, fault(number + 1, at_s=at_s)))
    return ledger


def view(ledger: NodeLedger, *, tainted: bool = False) -> NodeView:
    node = Node("n0", uid="u", taints=OURS if tainted else ())
    return NodeView(node=node, report=DeviceReport("n0"), ledger=ledger)


def person(*, for_s: float | None = None, device: str = "", text: str = "fan", who: str = "ann") -> Isolation:
    return isolating.for_person(
        "n0", device=device, text=text, person=who, for_s=for_s, settings=FaultSettings(), now_s=NOW_S
    )


@pytest.mark.parametrize(
    ("ledger", "manual"),
    [
        pytest.param(failed(2), False, id="twice"),
        pytest.param(failed(3), True, id="three-times"),
        pytest.param(failed(3, every_s=43_200.0), False, id="the-first-is-out-of-the-window"),
        pytest.param(
            isolating.discounted(failed(3), f"ChipUnhealthy:{CARD}", by="recovery:ns/p0#2"),
            False,
            id="one-was-the-programs-fault",
        ),
        pytest.param(isolating.uncounted(failed(4), CARD), False, id="released-before"),
    ],
)
def test_a_card_isolated_too_often_stays_isolated(ledger: NodeLedger, manual: bool) -> None:
    found = plan_node(view(ledger), wanted=frozenset(), settings=Settings(), now_s=NOW_S)
    assert found.tainted == manual
    assert [item.id for item in found.ledger.isolations] == ([f"Repeated:{CARD}"] if manual else [])
    assert [notice.reason for notice in found.notices] == (["IsolationManual"] if manual else [])


def test_manual_lasts_until_a_person_releases_it_and_counts_anew() -> None:
    manual = plan_node(view(failed(4)), wanted=frozenset(), settings=Settings(), now_s=NOW_S).ledger
    later_s = NOW_S + 30 * 86_400
    stands = plan_node(view(manual, tainted=True), wanted=frozenset(), settings=Settings(), now_s=later_s)
    assert stands.tainted
    freed = isolating.released(stands.ledger, f"Repeated:{CARD}", person="ann", now_s=NOW_S)
    ended = plan_node(view(freed, tainted=True), wanted=frozenset(), settings=Settings(), now_s=NOW_S)
    assert (ended.tainted, ended.ledger.isolations, ended.ledger.past) == (False, (), ())
    assert [notice.reason for notice in ended.notices] == ["NodeReleased"]


def test_removing_the_taint_of_a_manual_isolation_releases_it() -> None:
    manual = plan_node(view(failed(4)), wanted=frozenset(), settings=Settings(), now_s=NOW_S).ledger
    seen = plan_node(view(manual, tainted=True), wanted=frozenset(), settings=Settings(), now_s=NOW_S).ledger
    told = plan_node(view(seen), wanted=frozenset(), settings=Settings(), now_s=NOW_S)
    assert [notice.reason for notice in told.notices] == ["IsolationOverruled"]
    gone = plan_node(view(told.ledger), wanted=frozenset(), settings=Settings(), now_s=NOW_S)
    assert (gone.tainted, gone.ledger.isolations, gone.ledger.past) == (False, (), ())
    again = plan_node(view(gone.ledger), wanted=frozenset(), settings=Settings(), now_s=NOW_S + 1)
    assert not again.changed


@pytest.mark.parametrize(
    ("second", "counted"),
    [
        pytest.param(fault(1, at_s=NOW_S + 30, card="Ascend910-4"), [False, False], id="same-code-30-s"),
        pytest.param(fault(1, at_s=NOW_S + 31, card="Ascend910-4"), [True, True], id="31-s"),
        pytest.param(fault(1, at_s=NOW_S, card="Ascend910-4", code="X"), [True, True], id="another-code"),
        pytest.param(fault(1, at_s=NOW_S, card="Ascend910-4", job="ns/d0"), [True, True], id="another-job"),
        pytest.param(fault(2, at_s=NOW_S + 5), [True, True], id="the-same-card"),
        pytest.param(fault(1, at_s=NOW_S + 5), [True], id="the-same-recovery-counts-once"),
    ],
)
def test_one_code_on_two_cards_of_a_job_counts_for_neither(second: Isolation, counted: list[bool]) -> None:
    ledger = forget(isolating.merged(EMPTY, fault(1, at_s=NOW_S)))
    assert [past.counted for past in isolating.merged(ledger, second).past] == counted


def test_the_past_is_bounded() -> None:
    assert len(failed(MAX_PAST + 20).past) == MAX_PAST


def test_a_ttl_ends_by_itself_and_says_when() -> None:
    ledger = isolating.asked_by_person(EMPTY, person(for_s=60.0))
    stands = plan_node(view(ledger, tainted=True), wanted=frozenset(), settings=Settings(), now_s=NOW_S + 59)
    assert (stands.tainted, stands.wake_at_s) == (True, NOW_S + 60)
    ended = plan_node(view(ledger, tainted=True), wanted=frozenset(), settings=Settings(), now_s=NOW_S + 60)
    assert (ended.tainted, ended.ledger.isolations) == (False, ())


def test_asking_twice_is_asking_once() -> None:
    once = isolating.asked_by_person(EMPTY, person())
    assert isolating.asked_by_person(once, person()) == once
    other = isolating.asked_by_person(once, person(who="bob", text="psu"))
    (entry,) = other.isolations
    assert (entry.wanted_by, entry.text) == (("person:ann", "person:bob"), "psu")


def test_releasing_twice_is_releasing_once() -> None:
    ledger = isolating.asked_by_person(EMPTY, person())
    once = isolating.released(ledger, "Person:-", person="ann", now_s=NOW_S)
    assert isolating.released(once, "Person:-", person="bob", now_s=NOW_S + 1) == once
    assert isolating.released(EMPTY, "Person:-", person="ann", now_s=NOW_S) == EMPTY


def test_isolating_again_after_a_release_sets_it_anew() -> None:
    ledger = isolating.released(
        isolating.asked_by_person(EMPTY, person()), "Person:-", person="ann", now_s=NOW_S
    )
    (entry,) = isolating.asked_by_person(ledger, person()).isolations
    assert (entry.overruled_at_s, entry.taint_seen) == (None, False)


def test_what_a_person_released_stays_released_while_its_fault_lasts() -> None:
    ledger = isolating.merged(EMPTY, fault(1, at_s=NOW_S))
    freed = isolating.released(ledger, f"ChipUnhealthy:{CARD}", person="ann", now_s=NOW_S)
    again = isolating.merged(freed, fault(1, at_s=NOW_S))
    sick = NodeView(
        node=Node("n0", uid="u", taints=OURS),
        report=DeviceReport("n0", unhealthy=frozenset({CARD})),
        ledger=again,
    )
    found = plan_node(sick, wanted=frozenset({"recovery:ns/p0#1"}), settings=Settings(), now_s=NOW_S + 1)
    assert (found.tainted, [item.overruled_by for item in found.ledger.isolations]) == (False, ["person:ann"])


def test_a_reborn_node_keeps_what_people_want_and_owes_the_taint() -> None:
    ledger = isolating.asked_by_person(EMPTY, person())
    seen = plan_node(view(ledger, tainted=True), wanted=frozenset(), settings=Settings(), now_s=NOW_S).ledger
    new = isolating.born_again(seen, node_uid="other")
    assert (new.node_uid, [item.taint_seen for item in new.isolations]) == ("other", [False])


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " "},
        {"text": "a\nb"},
        {"text": "x" * 201},
        {"device": "3"},
        {"device": "../x-1"},
        {"for_s": 0.0},
        {"for_s": float("nan")},
        {"for_s": 1e9},
        {"who": "a b"},
        {"who": ""},
    ],
    ids=str,
)
def test_what_a_person_asks_is_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        person(**wrong)  # type: ignore[arg-type]


def test_the_settings_name_the_rule() -> None:
    assert (FaultSettings().manual_threshold, FaultSettings().manual_window_s) == (3, 86_400.0)


BY_FAULT = Settings(faults=FaultSettings(chip_isolation=ChipIsolation.PUBLIC_FAULT))


def marked_by_person(device: str = CARD) -> NodeLedger:
    """A card that is to be kept free by telling ClusterD."""
    wanted = isolating.for_person(
        "n0", device=device, text="hbm", person="ann", for_s=None, settings=BY_FAULT.faults, now_s=NOW_S
    )
    return isolating.asked_by_person(EMPTY, wanted)


def look(ledger: NodeLedger) -> NodeDecision:
    return plan_node(view(ledger), wanted=frozenset(), settings=BY_FAULT, now_s=NOW_S)


def test_a_card_is_kept_free_by_telling_clusterd_and_not_by_a_taint() -> None:
    told = look(marked_by_person())
    assert (told.tainted, told.marks) == (False, frozenset({CARD}))
    assert [notice.reason for notice in told.notices] == ["NodeIsolated"]
    again = look(told.ledger)
    assert (again.changed, again.marks) == (False, None)
    freed = look(isolating.released(told.ledger, f"Person:{CARD}", person="ann", now_s=NOW_S))
    assert (freed.marks, freed.ledger.isolations) == (frozenset(), ())


def test_the_list_that_shows_the_card_because_of_us_does_not_release_it() -> None:
    told = look(marked_by_person()).ledger
    sick = replace(view(told), listed=ListedDevices("n0", frozenset({CARD})))
    found = plan_node(sick, wanted=frozenset(), settings=BY_FAULT, now_s=NOW_S)
    assert (found.changed, len(found.ledger.isolations)) == (False, 1)


def test_what_the_frequency_rule_asks_is_recorded_before_it_is_told() -> None:
    first = look(failed(4))
    assert (first.marks, [item.marked for item in first.ledger.isolations]) == (None, [None])
    assert look(first.ledger).marks == frozenset({CARD})


def test_a_card_that_no_public_fault_can_name_gets_the_taint() -> None:
    found = look(marked_by_person("Ascend910-32"))
    assert (found.tainted, found.marks) == (True, None)


def test_the_same_code_on_a_second_node_of_the_job_takes_the_count_back() -> None:
    world = World()
    world.add("p0", cards=8)
    world.add("d0")
    world.start()
    world.lists = world.accepts = False  # the pods stand on while the second card shows
    first, second = world.pods_of("p0")
    world.break_card(first)
    world.settle(for_s=2.0)
    assert [past.counted for past in past_of(world, first.node)] == [True]
    world.break_card(second)
    world.settle(for_s=2.0)
    assert [past.counted for past in past_of(world, first.node)] == [False]
    assert [past.counted for past in past_of(world, second.node)] == [False]
    world.decisions.clear()
    world.settle(for_s=5.0)
    actions = [action for decision in world.decisions for action in decision.actions]
    assert not any(isinstance(action, DiscountIsolation) for action in actions)


def test_case_051_only_faults_under_a_running_workload_count() -> None:
    once = forget(isolating.merged(EMPTY, fault(1, at_s=NOW_S)))
    idle = plan_node(  # a card that fails while nobody uses it: nobody asks for its isolation
        NodeView(node=Node("n0", uid="u"), report=DeviceReport("n0", frozenset({CARD})), ledger=once),
        wanted=frozenset(),
        settings=Settings(faults=FaultSettings(manual_threshold=2)),
        now_s=NOW_S,
    )
    assert (idle.changed, len(once.past)) == (False, 1)


def past_of(world: World, node: str) -> tuple[PastIsolation, ...]:
    ledger = world.machines[node].ledger
    return ledger.past if ledger is not None else ()
