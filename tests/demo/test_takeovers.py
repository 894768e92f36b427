"""Who was active: the judge sees a takeover that did not come, one too many, and one that was not true."""

from __future__ import annotations

import pytest

from mindie_ha.demo.expectations import Expect
from mindie_ha.demo.observations import ActiveSeen, Observations
from mindie_ha.demo.takeovers import complaints
from tests.demo.seen import FAULT_S, MS, a_good_run, pod

FIRST, SECOND = f"{MS}-master-0", f"{MS}-worker-0"
OLD, PEER, NEW = (FIRST, "a"), (SECOND, "b"), (FIRST, "c")


def a_run(*later: tuple[tuple[str, str], ...], leader: str = "b") -> Observations:
    """The first pod is active at the fault; `later`: whom the status called active after it, in order."""
    seen = a_good_run()
    seen.pods = {
        uid: pod(MS, uid, f"127.0.8.{number}", created_s=created_s)
        for number, (uid, created_s) in enumerate((("a", 1.0), ("b", 1.0), ("c", FAULT_S + 5)))
    }
    seen.actives = [ActiveSeen(10.0, MS, (OLD,))]
    seen.actives += [ActiveSeen(FAULT_S + 1 + number, MS, pods) for number, pods in enumerate(later)]
    seen.leaders = {MS: leader}
    return seen


def said(seen: Observations, *, after: str) -> list[str]:
    """Complaints about the wish that `after` is the active one in the end."""
    actives = [{"workload": MS, "before": FIRST, "after": after}]
    return list(complaints(seen, Expect.model_validate({"recoveries": [], "actives": actives})))


def test_a_standby_that_takes_over_is_fine() -> None:
    assert said(a_run((), (PEER,)), after=SECOND) == []


def test_an_active_one_that_stays_is_fine() -> None:
    assert said(a_run(leader="a"), after=FIRST) == []


@pytest.mark.parametrize(
    ("later", "leader", "after", "words"),
    [
        pytest.param([()], "b", SECOND, "in the end the status called nobody", id="no takeover"),
        pytest.param([(NEW,)], "c", SECOND, f"called {FIRST} active", id="by another"),
        pytest.param([(PEER,)], "c", SECOND, "in the end c leads", id="not true"),
        pytest.param([(), (OLD,)], "a", FIRST, "called nobody active", id="a gap"),
        pytest.param([(OLD, PEER), (OLD,)], "a", FIRST, SECOND, id="two for a while"),
    ],
)
def test_what_was_not_as_expected_is_told(
    later: list[tuple[tuple[str, str], ...]], leader: str, after: str, words: str
) -> None:
    found = said(a_run(*later, leader=leader), after=after)
    assert found
    assert words in found[0]


def test_a_new_pod_of_the_name_of_the_standby_did_not_stand_by() -> None:
    seen = a_run(((SECOND, "c"),), leader="c")
    assert said(seen, after=SECOND) == [f"{MS}: {SECOND} (c) did not stand by at the fault"]
