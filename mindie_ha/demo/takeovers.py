"""Judging who was active: what the status said, against what is expected and what really was.

Promise: where nobody was to take over, the status never said anything else of that role from the first fault
on; where somebody was, it is the pod that stood by at the fault, and in the end the pod that really leads.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindie_ha.demo.expectations import Expect, ExpectedActive
from mindie_ha.demo.observations import ActiveSeen, Observations


def complaints(observations: Observations, expect: Expect) -> Iterator[str]:
    """What was not as expected."""
    for wanted in expect.actives:
        yield from _of_one(observations, wanted)


def _of_one(observations: Observations, wanted: ExpectedActive) -> Iterator[str]:
    fault_s = observations.first_fault_s()
    history = [each for each in observations.actives if each.workload == wanted.workload]
    before = next((each for each in reversed(history) if each.at_s <= fault_s), None)
    if before is None or [name for name, _ in before.pods] != [wanted.before]:
        yield f"{wanted.workload}: at the first fault the status called {_names(before)} active"
        return
    later = [each for each in history if each.at_s > fault_s]
    if wanted.before == wanted.after:
        for each in later:
            yield f"{wanted.workload}: at {each.at_s:.1f} s the status called {_names(each)} active"
        return
    last = later[-1] if later else before
    if [name for name, _ in last.pods] != [wanted.after]:
        yield f"{wanted.workload}: in the end the status called {_names(last)} active"
        return
    [(name, uid)] = last.pods
    if not observations.pods[uid].here_at(fault_s):
        yield f"{wanted.workload}: {name} ({uid}) did not stand by at the fault"
    if observations.leaders.get(wanted.workload) != uid:
        really = observations.leaders.get(wanted.workload, "nobody")
        yield f"{wanted.workload}: in the end {really} leads, and not {name} ({uid})"


def _names(seen: ActiveSeen | None) -> str:
    return ", ".join(name for name, _ in seen.pods) if seen is not None and seen.pods else "nobody"


__all__ = ["complaints"]
