"""A newly complete half waits for its peer, never for ever, and never takes back what is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindie_ha.model.ranktables import PdRole
from mindie_ha.ranktable.hold import CompleteInstance, peer_hold
from mindie_ha.ranktable.pd_roles import pd_role

P, D, H, U = PdRole.PREFILL, PdRole.DECODE, PdRole.HYBRID, PdRole.UNKNOWN
NEW, SHOWN = False, True


@pytest.mark.parametrize(
    ("instances", "held"),
    [
        pytest.param([(P, 100, NEW)], {"0": 700.0}, id="new-p-alone"),
        pytest.param([(D, 100, NEW)], {"0": 700.0}, id="new-d-alone"),
        pytest.param([(P, 100, NEW), (P, 150, NEW)], {"0": 700.0, "1": 750.0}, id="two-new-p"),
        pytest.param([(P, 100, NEW), (D, 150, NEW)], {}, id="both-new"),
        pytest.param([(P, 100, NEW), (D, 0, SHOWN)], {}, id="peer-is-shown"),
        pytest.param([(P, 100, SHOWN)], {}, id="shown-alone-is-not-taken-back"),
        pytest.param([(P, 0, SHOWN), (P, 100, NEW)], {"1": 700.0}, id="a-shown-p-is-no-peer-of-a-p"),
        pytest.param([(U, 100, NEW)], {}, id="unknown-alone"),
        pytest.param([(H, 100, NEW)], {}, id="hybrid-alone"),
        pytest.param([(P, 100, NEW), (U, 100, NEW)], {}, id="unknown-might-be-the-peer"),
        pytest.param([(P, 9999, NEW)], {"0": 799.0}, id="completion-in-the-future-counts-as-now"),
        pytest.param([], {}, id="nothing"),
    ],
)
def test_who_is_held_at_199(instances: list[tuple[PdRole, float, bool]], held: dict[str, float]) -> None:
    complete = [CompleteInstance(str(n), *facts) for n, facts in enumerate(instances)]
    assert {item.key: item.until_s for item in peer_hold(complete, now_s=199.0)} == held


@pytest.mark.parametrize(("now_s", "count"), [(699.9, 1), (700.0, 0), (9000.0, 0)])
def test_the_hold_ends(now_s: float, count: int) -> None:
    complete = [CompleteInstance("ns/p", P, 100.0, NEW)]
    held = peer_hold(complete, now_s=now_s)
    assert len(held) == count
    assert all("waits for a complete decode" in item.reason for item in held)


def test_a_hold_of_zero_holds_nobody() -> None:
    assert peer_hold([CompleteInstance("ns/p", P, 100.0, NEW)], now_s=100.0, peer_hold_s=0.0) == ()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(PdRole), st.floats(0, 2000), st.booleans()), max_size=6),
    st.floats(0, 2000),
)
def test_held_ones_are_new_halves_and_their_wait_is_bounded(
    instances: list[tuple[PdRole, float, bool]], now_s: float
) -> None:
    complete = {str(n): CompleteInstance(str(n), *facts) for n, facts in enumerate(instances)}
    for item in peer_hold(complete.values(), now_s=now_s):
        assert not complete[item.key].published
        assert complete[item.key].role in (P, D)
        assert now_s < item.until_s <= now_s + 600.0


@pytest.mark.parametrize(
    ("env_role", "name", "group_name", "expected"),
    [
        pytest.param("p", "mindie-server-d0", "group1", P, id="env-wins"),
        pytest.param("decode", "x", None, D, id="env-word"),
        pytest.param(" Prefill ", "x", None, P, id="env-case-and-blanks"),
        pytest.param("both", "x-p0", None, H, id="env-both"),
        pytest.param("flex", "x", None, H, id="env-flex"),
        pytest.param("none", "x", None, H, id="env-none"),
        pytest.param("banana", "mindie-server-p12", None, P, id="foreign-env-then-name"),
        pytest.param(None, "mindie-server-d1", "group0", D, id="name-before-label"),
        pytest.param("", "server", "group0", P, id="label-group0"),
        pytest.param("", "server", "group1", D, id="label-group1"),
        pytest.param(None, "server-p", None, U, id="name-without-number"),
        pytest.param(None, "app0", None, U, id="name-without-dash"),
        pytest.param(None, "server", "group2", U, id="foreign-label"),
    ],
)
def test_roles(env_role: str | None, name: str, group_name: str | None, expected: PdRole) -> None:
    assert pd_role(env_role=env_role, name=name, group_name=group_name) is expected
