"""One fault and one workload: now, later or never; and whom faults of a whole node hit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.intake.collect import Collected, collect
from mindie_ha.intake.nodes import mark_fault
from mindie_ha.intake.silences import CODES, LEVELS
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.levels import Family, Level
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Role, Workload

SEEN_S = 1000.0


def job(
    role: Role = Role.SERVER, *, annotations: dict[str, str] | None = None, strategy: str = ""
) -> Workload:
    return Workload(
        key=ObjectKey("ns", "job"),
        uid="job-uid",
        kind="AscendJob",
        role=role,
        pd_role=PdRole.UNKNOWN,
        job_id="svc",
        replicas=1,
        labels={"subHealthyStrategy": strategy} if strategy else {},
        annotations=annotations or {},
    )


def pod(**fields: object) -> Pod:
    base = Pod(
        key=ObjectKey("ns", "job-0"),
        uid=PodUID("uid-0"),
        owner_uid="job-uid",
        phase=PodPhase.RUNNING,
        node="n0",
        devices=("Ascend910-0", "Ascend910-1"),
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def card(*facts: tuple[str, Level], family: Family = Family.CHIP, listed: bool = True) -> Fault:
    details = tuple(
        CodeFact(code, level, family, listed=listed, first_seen_s=SEEN_S) for code, level in facts
    )
    return Fault(FaultSource.DEVICE, Cause.CHIP_UNHEALTHY, node="n0", device="Ascend910-0", details=details)


def board(cause: Cause = Cause.NODE_HARDWARE, *, acts: bool = True) -> Fault:
    level = Level.SEPARATE if acts else Level.PRE_SEPARATE
    fact = CodeFact("2C000031", level, Family.NODE, first_seen_s=SEEN_S)
    return Fault(FaultSource.NODE_INFO, cause, node="n0", acts=acts, details=(fact,))


def gather(
    *cards: Fault,
    workload: Workload | None = None,
    after_s: float = 0.0,
    held: Pod | None = None,
    troubles: tuple[Fault, ...] = (),
    annotations: dict[str, str] | None = None,
) -> Collected:
    return collect(
        workload=workload or job(),
        pods=(held or pod(),),
        nodes={"n0": NodeView(Node("n0"), troubles=troubles)},
        device_faults={"n0": cards},
        ledger=WorkloadLedger(workload="AscendJob/ns/job", workload_uid="job-uid"),
        settings=Settings(),
        now_s=SEEN_S + after_s,
        annotations=annotations,
    )


REQUEST = card(("80C98009", Level.RESTART_REQUEST))


@pytest.mark.parametrize(
    ("workload", "after_s", "acts", "wake_s"),
    [
        pytest.param(job(), 0.0, False, 60.0, id="049-silent-at-first"),
        pytest.param(job(), 59.0, False, 60.0, id="silent-until-the-end"),
        pytest.param(job(), 60.0, True, None, id="window-ends-with-the-fault-still-there"),
        pytest.param(job(Role.TRAINING), 0.0, True, None, id="training-at-once"),
        pytest.param(job(annotations={LEVELS: "RestartRequest:0"}), 0.0, True, None, id="own-window-of-0"),
        pytest.param(
            job(annotations={LEVELS: "RestartBusiness:9"}), 0.0, True, None, id="own-levels-replace"
        ),
        pytest.param(job(annotations={CODES: "80C98009:30"}), 30.0, True, None, id="049-own-code-30-s"),
    ],
)
def test_restart_request_waits_for_its_window(
    workload: Workload, after_s: float, acts: bool, wake_s: float | None
) -> None:
    found = gather(REQUEST, workload=workload, after_s=after_s)
    assert [fault.acts for fault in found.faults] == [acts]
    assert found.wake_at_s == (None if wake_s is None else SEEN_S + wake_s)
    assert ("silent until" in found.faults[0].evidence) is not acts


def test_one_code_without_window_is_enough() -> None:
    both = card(("80C98009", Level.RESTART_REQUEST), ("80E18005", Level.RESTART_NPU))
    found = gather(both)
    assert [(fault.acts, fault.level) for fault in found.faults] == [(True, "RestartNPU")]
    assert found.wake_at_s is None


def test_the_podgroup_speaks_where_the_job_does_not() -> None:
    found = gather(card(("A", Level.SEPARATE)), annotations={CODES: "A:10"})
    assert (found.faults[0].acts, found.wake_at_s) == (False, SEEN_S + 10)
    overruled = gather(
        card(("A", Level.SEPARATE)), workload=job(annotations={CODES: "A:0"}), annotations={CODES: "A:10"}
    )
    assert overruled.faults[0].acts


@pytest.mark.parametrize(
    ("strategy", "acts"),
    [("", False), ("ignore", False), ("graceExit", True), ("forceExit", True), ("hotSwitch", False)],
)
def test_sub_health_is_answered_by_strategy(strategy: str, acts: bool) -> None:
    found = gather(card(("81A3880C", Level.SUB_HEALTH), listed=False), workload=job(strategy=strategy))
    assert [fault.acts for fault in found.faults] == [acts]


def test_a_fault_of_the_link_never_acts_whatever_the_strategy() -> None:
    for level in Level:
        found = gather(card(("81078603", level), family=Family.NETWORK), workload=job(strategy="forceExit"))
        assert [fault.acts for fault in found.faults] == [False]


def test_a_pod_on_a_virtual_card_is_hit_by_its_chip() -> None:
    found = gather(card(("A", Level.SEPARATE)), held=pod(devices=("Ascend910-2c-100-0",)))
    assert [fault.pod_uid for fault in found.faults] == ["uid-0"]


@pytest.mark.parametrize(
    ("after_s", "acts", "wake_s"), [(0.0, False, 600.0), (600.0, True, None)], ids=["at-first", "too-long"]
)
def test_a_reset_may_take_its_time(after_s: float, acts: bool, wake_s: float | None) -> None:
    """045."""
    fault = Fault(
        FaultSource.DEVICE,
        Cause.CHIP_RESETTING,
        node="n0",
        device="Ascend910-0",
        first_seen_s=SEEN_S,
        acts=False,
    )
    found = gather(fault, after_s=after_s)
    assert [one.acts for one in found.faults] == [acts]
    assert found.wake_at_s == (None if wake_s is None else SEEN_S + wake_s)


@pytest.mark.parametrize(
    ("held", "hits"),
    [
        pytest.param(pod(), 1, id="with-cards"),
        pytest.param(pod(devices=()), 1, id="057-without-cards"),
        pytest.param(pod(node="n1"), 0, id="055-elsewhere"),
        pytest.param(pod(terminating_since_s=1.0), 0, id="leaving"),
        pytest.param(pod(node=""), 0, id="pending"),
    ],
)
@pytest.mark.parametrize("role", [Role.SERVER, Role.CONTROLLER, Role.TRAINING])
def test_a_board_fault_hits_every_pod_of_the_node(held: Pod, hits: int, role: Role) -> None:
    found = gather(held=held, troubles=(board(),), workload=job(role))
    assert [(fault.cause, fault.acts) for fault in found.faults] == [(Cause.NODE_HARDWARE, True)] * hits


def test_a_board_that_is_only_pre_separated_disturbs_nobody() -> None:
    """V51, 047."""
    assert [fault.acts for fault in gather(troubles=(board(acts=False),)).faults] == [False]


@pytest.mark.parametrize(
    ("word", "marked"), [("UnHealthy", True), ("Unhealthy", False), ("Healthy", False), ("", False)]
)
def test_only_the_exact_word_marks_a_node(word: str, marked: bool) -> None:
    fault = mark_fault(Node("n0", healthy_status=word), now_s=SEEN_S)
    assert (fault is not None) is marked
    if fault is not None:
        assert [one.acts for one in gather(troubles=(fault,)).faults] == [True]


@pytest.mark.parametrize(
    ("label", "strategy", "acts"),
    [
        pytest.param("Separate", "", True, id="D16"),
        pytest.param("software", "", False, id="D17"),
        pytest.param("retry-fault", "", False, id="retry-fault"),
        pytest.param("SubHealth", "", False, id="sub-health-ignored"),
        pytest.param("SubHealth", "forceExit", True, id="sub-health-forced"),
        pytest.param("nonsense", "forceExit", False, id="unknown"),
    ],
)
def test_the_label_of_a_pod(label: str, strategy: str, acts: bool) -> None:
    found = gather(held=pod(labels={"fault-type": label}), workload=job(strategy=strategy))
    assert [(fault.cause, fault.acts) for fault in found.faults] == [(Cause.POD_MARKED, acts)]


@pytest.mark.parametrize(
    "status", ["Unhealthy-NodeUnhealthy", "Unhealthy-CardUnhealthy", "Unhealthy-pod-failed"]
)
def test_the_conclusion_of_others_is_shown_and_not_answered_again(status: str) -> None:
    found = gather(held=pod(annotations={"huawei.com/pod-status": status}))
    assert [(fault.cause, fault.acts) for fault in found.faults] == [(Cause.POD_MARKED, False)]
    assert not gather(held=pod(annotations={"huawei.com/pod-status": "Healthy"})).faults
