"""Public faults over time. Ids are the vectors of the fault input contract §7.4 and cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.intake import public_faults
from mindie_ha.intake.public_faults import HOLD_S, MAX_WEIGHT, PublicFaults
from mindie_ha.intake.public_rates import Rates
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import FaultSource
from tests.intake.public_examples import fault, message

NOW_S = 1_740_000_000.0


@dataclass
class World:
    """The state, moved by messages at given seconds."""

    state: PublicFaults = field(default_factory=PublicFaults)

    def at(self, second: float, assertion: str, **changes: Any) -> World:
        read = message(fault(assertion=assertion, **changes))
        self.state = public_faults.apply(self.state, read, now_s=NOW_S + second).state
        return self

    def devices(self, second: float) -> list[str]:
        """What is wrong at a second."""
        return [one.device for one in self.faults(second)]

    def faults(self, second: float) -> tuple[Any, ...]:
        return public_faults.faults_on(
            self.state.faults.values(),
            device_prefix="Ascend910",
            now_s=NOW_S + second,
            suspect_after_s=86_400.0,
        )


BOTH = ["Ascend910-0", "Ascend910-1"]


def test_v62_a_second_occur_changes_nothing() -> None:
    world = World().at(0, "occur").at(1, "occur", influence=[{"nodeName": "node-1", "deviceIds": [7]}])

    assert world.devices(2) == BOTH


def test_v63_recover_after_six_seconds_ends_at_once() -> None:
    assert World().at(0, "occur").at(6, "recover").devices(6) == []


def test_v64_recover_after_one_second_ends_five_after_the_occur() -> None:
    world = World().at(0, "occur").at(1, "recover")

    assert world.devices(4.9) == BOTH
    assert world.devices(5) == []


def test_v65_a_recover_ends_an_occur_that_comes_late() -> None:
    world = World().at(0, "recover").at(2, "occur")

    assert world.devices(4.9) == BOTH
    assert world.devices(5) == []


def test_a_recover_without_fault_is_forgotten_after_five_seconds() -> None:
    assert World().at(0, "recover").at(5, "occur").devices(60) == BOTH


def test_v66_once_is_seen_for_five_seconds() -> None:
    world = World().at(0, "once")

    assert world.devices(4.9) == BOTH
    assert world.devices(5) == []


def test_once_does_not_shorten_a_fault_that_stands() -> None:
    assert World().at(0, "occur").at(1, "once").devices(60) == BOTH


def test_another_node_resource_or_id_is_another_fault() -> None:
    world = World().at(0, "occur").at(10, "recover", faultId="fault-0002")
    world.at(10, "recover", influence=[{"nodeName": "node-2", "deviceIds": [0]}])

    assert world.devices(20) == BOTH


def test_names_that_only_look_alike_when_joined_are_kept_apart() -> None:
    world = World()
    for resource, fault_id in (("CCAE", "xfault-01"), ("Netmind", "fault-0001")):
        read = message(fault(faultId=fault_id), resource=resource)
        world.state = public_faults.apply(world.state, read, now_s=NOW_S).state

    assert len(world.state.faults) == 2


def test_only_separate_acts_and_times_are_ours() -> None:
    world = World().at(0, "occur").at(0, "occur", faultId="fault-0002", faultCode="010001001")

    found = world.faults(1)

    assert {(one.level, one.acts) for one in found} == {("SeparateNPU", True), ("SubHealthFault", False)}
    assert {one.source for one in found} == {FaultSource.PUBLIC}
    assert {one.first_seen_s for one in found} == {NOW_S}


def test_v68_the_time_of_the_sender_is_kept_in_seconds() -> None:
    (one,) = World().at(0, "occur").state.faults.values()

    assert one.fault_time_s == 1_739_866_717


def test_a_clock_that_goes_back_does_not_keep_a_recovered_fault() -> None:
    world = World().at(0, "occur").at(-3600, "recover")

    assert world.devices(-3600 + HOLD_S) == []


def test_043_a_fault_whose_sender_is_silent_is_suspect_and_one_recover_clears_it() -> None:
    world = World().at(0, "occur")
    restarted = World(PublicFaults.of(world.state.ledger()))

    assert "suspect" not in restarted.faults(86_399)[0].evidence
    assert "suspect" in restarted.faults(86_400)[0].evidence
    assert restarted.at(86_400, "recover").devices(86_400) == []


def test_043_a_fault_that_is_reported_again_is_not_suspect() -> None:
    world = World().at(0, "occur").at(80_000, "occur")

    assert "suspect" not in world.faults(90_000)[0].evidence


def test_the_state_survives_a_restart() -> None:
    world = World().at(0, "occur").at(1, "recover").at(1, "recover", faultId="fault-0002")
    text = world.state.ledger().model_dump_json()
    restored = PublicFaults.of(type(world.state.ledger()).model_validate_json(text))

    assert restored == world.state
    assert restored.next_end_s() == NOW_S + 5


def test_what_finds_no_room_is_counted_and_never_written() -> None:
    nodes = [{"nodeName": f"node-{n}" + "x" * 200, "deviceIds": list(range(32))} for n in range(1000)]
    state, refused = PublicFaults(), 0
    for n in range(5):
        applied = public_faults.apply(
            state, message(fault(faultId=f"fault-{n:04}", influence=nodes)), now_s=NOW_S
        )
        state, refused = applied.state, refused + applied.no_room

    assert refused > 0
    assert refused + len(state.faults) == 5000
    assert len(orjson.dumps(state.ledger().model_dump(mode="json"))) <= MAX_WEIGHT


def test_v70_the_101st_message_at_once_is_too_many() -> None:
    rates = Rates.full(["CCAE"], now_s=0.0)
    answers = []
    for _ in range(101):
        rates, allowed = rates.take("CCAE", now_s=0.5)
        answers.append(allowed)

    assert answers == [True] * 100 + [False]
    assert rates.wait_s("CCAE", now_s=0.5) == pytest.approx(1.0)
    assert rates.take("CCAE", now_s=1.5)[1]


def test_v55_a_program_without_bucket_never_gets_a_token() -> None:
    rates = Rates.full(["CCAE"], now_s=0.0)

    assert not rates.take("unknown", now_s=0.0)[1]
    assert rates.wait_s("unknown", now_s=0.0) is None


EVENTS = st.lists(
    st.tuples(
        st.floats(0, 20),
        st.sampled_from(["occur", "recover", "once"]),
        st.sampled_from(["fault-0001", "fault-0002"]),
        st.sampled_from(["node-1", "node-2"]),
    ),
    max_size=12,
)


@given(EVENTS)
def test_a_recovery_never_leaves_its_fault(events: list[tuple[float, str, str, str]]) -> None:
    world, last = World(), {}
    for second, assertion, fault_id, node in sorted(events, key=lambda event: event[0]):
        influence = [{"nodeName": node, "deviceIds": [0]}]
        world.at(second, assertion, faultId=fault_id, influence=influence)
        last[(node, "CCAE", fault_id)] = (assertion, second)
    later = public_faults.expire(world.state, now_s=NOW_S + 25.0 + 0.001)

    for key, (assertion, _) in last.items():
        assert key not in later.faults or assertion != "recover"
    assert not later.recovered


@given(
    st.lists(
        st.tuples(st.sampled_from(["occur", "recover", "once"]), st.sampled_from("abcd")),
        max_size=4,
        unique_by=lambda event: event[1],
    )
)
def test_messages_about_different_faults_may_come_in_any_order(events: list[tuple[str, str]]) -> None:
    states = []
    for order in permutations(events):
        world = World()
        for assertion, letter in order:
            world.at(0, assertion, faultId=f"fault-000{letter}")
        states.append(world.state.ledger())

    assert all(state == states[0] for state in states)


@given(st.floats(0, 4.9), st.booleans())
def test_occur_and_recover_within_the_hold_may_change_places(gap_s: float, swapped: bool) -> None:
    first, second = ("recover", "occur") if swapped else ("occur", "recover")

    assert World().at(0, first).at(gap_s, second).devices(HOLD_S + gap_s) == []


def test_a_message_without_a_good_fault_changes_nothing() -> None:
    with pytest.raises(InputError):
        message(fault(faultCode="000000000"))
