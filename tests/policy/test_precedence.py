"""One cause that shows twice is one recovery; one code on two cards is the program's fault."""

from __future__ import annotations

import pytest

from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import PodUID
from mindie_ha.model.ledgers import Isolation, NodeLedger
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.settings import FaultSettings
from mindie_ha.model.views import WorkloadView
from mindie_ha.policy import isolating, verdicts
from mindie_ha.policy.isolating import counted
from tests.policy.worlds import World, service

CARD = "Ascend910-3"


def fault(
    cause: Cause, source: FaultSource, *, device: str = "", node: str = "n0", acts: bool = True
) -> Fault:
    codes = ("80E18005",) if device else ()
    return Fault(
        source, cause, node=node, device=device, pod_uid=PodUID("u"), pod="p-0", codes=codes, acts=acts
    )


CHIP = fault(Cause.CHIP_UNHEALTHY, FaultSource.DEVICE, device=CARD)
PUBLIC = fault(Cause.PUBLIC_FAULT, FaultSource.PUBLIC, device=CARD)
LOST = fault(Cause.NODE_NOT_READY, FaultSource.NODE)
BOARD = fault(Cause.NODE_HARDWARE, FaultSource.NODE_INFO)
MARK = fault(Cause.NODE_MARKED, FaultSource.NODE)
FAILED = fault(Cause.POD_FAILED, FaultSource.POD)
LABEL = fault(Cause.POD_MARKED, FaultSource.POD_MARK)
JOINED = fault(Cause.CORRELATED, FaultSource.RELATION, device=CARD)


@pytest.mark.parametrize(
    ("told", "named", "evidence"),
    [
        pytest.param(
            (PUBLIC, CHIP), Cause.CHIP_UNHEALTHY, "also PublicFault (80E18005)", id="147-card-and-public"
        ),
        pytest.param((LOST, CHIP), Cause.CHIP_UNHEALTHY, "also NodeNotReady", id="lost-node-and-its-card"),
        pytest.param((MARK, BOARD), Cause.NODE_HARDWARE, "also NodeMarked", id="board-and-annotation"),
        pytest.param((FAILED, CHIP), Cause.CHIP_UNHEALTHY, "also PodFailed", id="died-on-a-broken-card"),
        pytest.param((LABEL, JOINED), Cause.CORRELATED, "also PodMarked", id="our-rule-and-the-label"),
        pytest.param((LABEL, FAILED), Cause.POD_MARKED, "also PodFailed", id="label-and-exit"),
    ],
)
def test_the_more_certain_one_is_named_and_nothing_is_paid(
    told: tuple[Fault, ...], named: Cause, evidence: str
) -> None:
    world = service()
    view = world.view().workloads[0]
    verdict = verdicts.judge(WorkloadView(view.workload, view.pods, view.ledger, faults=told))
    intent = verdicts.intent(verdict, now_s=1.0)
    assert (intent.cause, intent.software) == (named, False)
    assert intent.summary.endswith(evidence)


def test_a_fault_elsewhere_is_no_evidence() -> None:
    other = fault(Cause.NODE_NOT_READY, FaultSource.NODE, node="n1")
    assert verdicts.witnesses(verdicts.Verdict(acting=(CHIP, other))) == ()


def test_a_card_reported_twice_counts_once() -> None:
    ledger = NodeLedger(node="n0")
    for epoch in range(1, 3):
        for reason, until in (("ChipUnhealthy", "listed"), ("PublicFault", "healed")):
            entry = Isolation(
                id=f"{reason}:{CARD}",
                device=CARD,
                reason=reason,
                wanted_by=(f"recovery:ns/p#{epoch}",),
                until="listed" if until == "listed" else "healed",
                since_s=epoch * 100.0,
                undo="",
            )
            ledger = counted(ledger, entry)
    assert isolating.repeated(ledger, settings=FaultSettings(), now_s=400.0) == ()


def two_cards(level: Level, *, apart_s: float = 10.0) -> World:
    """The same code on a card of each pod of p0; the first pod's came `apart_s` earlier."""
    world = service()
    pods = world.pods_of("p0")
    first_s = world.now_s
    world.now_s += apart_s
    for pod, at_s in zip(pods, (first_s, world.now_s), strict=True):
        fact = CodeFact("80C98000", level, Family.CHIP, listed=True, first_seen_s=at_s)
        world.machines[pod.node].faults.append(
            Fault(
                FaultSource.DEVICE,
                Cause.CHIP_UNHEALTHY,
                node=pod.node,
                device=pod.devices[0],
                codes=("80C98000",),
                level=level,
                first_seen_s=at_s,
                details=(fact,),
            )
        )
    world.lists = False
    world.look()
    return world


@pytest.mark.parametrize(
    ("level", "apart_s", "isolated", "counted"),
    [
        pytest.param(Level.RESTART_BUSINESS, 10.0, 0, 0, id="V91-a-restart-level"),
        pytest.param(Level.SEPARATE, 10.0, 2, 0, id="separate-still-isolates"),
        pytest.param(Level.RESTART_NPU, 30.0, 2, 0, id="restart-npu-still-isolates"),
    ],
)
def test_one_code_on_two_cards(level: Level, apart_s: float, isolated: int, counted: int) -> None:
    world = two_cards(level, apart_s=apart_s)
    ledgers = [machine.ledger for machine in world.machines.values() if machine.ledger is not None]
    assert sum(len(ledger.isolations) for ledger in ledgers) == isolated
    assert sum(past.counted for ledger in ledgers for past in ledger.past) == counted
    world.settle(for_s=30.0)
    assert world.job("p0").ledger.epoch == 1
    assert world.job("p0").ledger.software_retries_spent == 0
