"""Which faults hit a workload: pods, nodes, cards, members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.intake.collect import Collected, collect
from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.ledgers import Member, WorkloadLedger
from mindie_ha.model.nodes import Node
from mindie_ha.model.pods import Pod, PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.recoveries import Intent, IntentKind, Phase, Recovery
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.model.workloads import Role, Workload

NOW_S = 1000.0


def job(role: Role = Role.SERVER, *, replicas: int = 2, restart_policy: str = "Never") -> Workload:
    return Workload(
        key=ObjectKey("ns", "job"),
        uid="job-uid",
        kind="AscendJob",
        role=role,
        pd_role=PdRole.UNKNOWN,
        job_id="svc",
        replicas=replicas,
        restart_policy=restart_policy,
    )


def pod(index: int = 0, **fields: object) -> Pod:
    name = f"job-{index}"
    base = Pod(
        key=ObjectKey("ns", name),
        uid=PodUID(f"uid-{index}"),
        owner_uid="job-uid",
        phase=PodPhase.RUNNING,
        node="n0",
        devices=("Ascend910-0", "Ascend910-1"),
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def card(device: str, *, node: str = "n0", acts: bool = True) -> Fault:
    return Fault(FaultSource.DEVICE, Cause.CHIP_UNHEALTHY, node=node, device=device, acts=acts)


def gather(
    *pods: Pod,
    workload: Workload | None = None,
    node: Node | None = None,
    cards: tuple[Fault, ...] = (),
    ledger: WorkloadLedger | None = None,
    settings: Settings | None = None,
) -> Collected:
    return collect(
        workload=workload or job(),
        pods=pods,
        nodes={"n0": NodeView(node or Node("n0"))},
        device_faults={"n0": cards},
        ledger=ledger or WorkloadLedger(workload="AscendJob/ns/job", workload_uid="job-uid"),
        settings=settings or Settings(),
        now_s=NOW_S,
    )


@pytest.mark.parametrize(
    ("held", "hit"),
    [
        pytest.param(pod(), True, id="D8-holds-the-card"),
        pytest.param(pod(devices=("Ascend910-5",)), False, id="D9-holds-another-card"),
        pytest.param(pod(node=""), False, id="D7-not-placed-yet"),
        pytest.param(pod(node="n1"), False, id="055-late-report-about-the-old-node"),
        pytest.param(pod(terminating_since_s=1.0), False, id="being-deleted"),
        pytest.param(pod(phase=PodPhase.SUCCEEDED), False, id="ended"),
    ],
)
def test_a_card_belongs_to_the_pod_that_holds_it_now(held: Pod, hit: bool) -> None:
    found = [fault for fault in gather(held, cards=(card("Ascend910-0"),)).faults if fault.device]
    assert [fault.pod_uid for fault in found] == ([held.uid] if hit else [])


@pytest.mark.parametrize(
    ("node", "cause", "acts", "wake_at_s"),
    [
        pytest.param(Node("n0"), None, None, None, id="ready"),
        pytest.param(
            Node("n0", ready=False, not_ready_since_s=NOW_S - 14.9),
            Cause.NODE_NOT_READY,
            False,
            NOW_S + 0.1,
            id="flaps",
        ),
        pytest.param(
            Node("n0", ready=False, not_ready_since_s=NOW_S - 15), Cause.NODE_NOT_READY, True, None, id="lost"
        ),
        pytest.param(Node("n0", exists=False), Cause.NODE_GONE, True, None, id="gone-at-once"),
    ],
)
def test_a_node_is_lost_after_a_while(
    node: Node, cause: Cause | None, acts: bool | None, wake_at_s: float | None
) -> None:
    found = gather(pod(), node=node)
    assert [(fault.cause, fault.acts) for fault in found.faults] == ([(cause, acts)] if cause else [])
    assert found.wake_at_s == (None if wake_at_s is None else pytest.approx(wake_at_s))


def test_a_lost_node_also_hits_pods_that_terminate_there() -> None:
    """069."""
    lost = Node("n0", ready=False, not_ready_since_s=0.0)
    assert gather(pod(terminating_since_s=1.0), node=lost).faults[0].acts


def test_one_lost_node_hits_every_pod_on_it() -> None:
    """137, 057: with or without cards."""
    lost = Node("n0", exists=False)
    found = gather(pod(0), pod(1, devices=()), node=lost)
    assert {fault.pod_uid for fault in found.faults} == {"uid-0", "uid-1"}


@pytest.mark.parametrize(
    ("workload", "bad", "expected"),
    [
        pytest.param(
            job(), pod(phase=PodPhase.FAILED, exit_code=1), (Cause.POD_FAILED, True), id="D3-failed"
        ),
        pytest.param(
            job(),
            pod(phase=PodPhase.FAILED, status_reason="Evicted"),
            (Cause.POD_EVICTED, True),
            id="evicted-costs-no-retry",
        ),
        pytest.param(job(), pod(exit_code=127), (Cause.POD_FAILED, True), id="D2-container-ended"),
        pytest.param(job(), pod(exit_code=0), None, id="D1-exit-0"),
        pytest.param(job(), pod(phase=PodPhase.SUCCEEDED), (Cause.POD_FAILED, True), id="server-ended"),
        pytest.param(job(Role.TRAINING), pod(phase=PodPhase.SUCCEEDED), None, id="training-done"),
        pytest.param(
            job(restart_policy="Always"),
            pod(restarts=1, exit_code=1),
            (Cause.POD_FAILED, True),
            id="rank-restarted",
        ),
        pytest.param(
            job(replicas=1, restart_policy="Always"), pod(restarts=1), None, id="kubelet-restarts-a-single"
        ),
        pytest.param(
            job(Role.COORDINATOR, restart_policy="OnFailure"),
            pod(restarts=3, exit_code=1),
            None,
            id="ms-restarted",
        ),
        pytest.param(
            job(Role.COORDINATOR, restart_policy="Always"),
            pod(restarts=7, waiting_reason="CrashLoopBackOff"),
            (Cause.CRASH_LOOP, True),
            id="075-crash-loop",
        ),
        pytest.param(job(), pod(waiting_reason="ImagePullBackOff"), None, id="image-pull"),
        pytest.param(
            job(), pod(phase=PodPhase.FAILED, terminating_since_s=1.0), None, id="O12-being-deleted"
        ),
    ],
)
def test_what_a_pod_says(workload: Workload, bad: Pod, expected: tuple[Cause, bool] | None) -> None:
    found = gather(bad, pod(1), workload=workload).faults
    assert [(fault.cause, fault.acts) for fault in found] == ([expected] if expected else [])


def test_an_owner_that_finished_is_only_shown() -> None:
    (fault,) = gather(pod(phase=PodPhase.SUCCEEDED), workload=job(replicas=1)).faults
    assert not fault.acts


MEMBERS = (Member(name="job-0", uid=PodUID("uid-0")), Member(name="job-1", uid=PodUID("uid-1")))


def remembered(**fields: object) -> WorkloadLedger:
    ledger = WorkloadLedger(workload="AscendJob/ns/job", workload_uid="job-uid", members=MEMBERS)
    return ledger.model_copy(update=fields)


def recovery() -> Recovery:
    intent = Intent(kind=IntentKind.FAULT, cause=Cause.POD_FAILED, at_s=0.0, summary="")
    return Recovery(epoch=1, intent=intent, rung="job", phase=Phase.STOP, phase_since_s=0.0, opened_at_s=0.0)


@pytest.mark.parametrize(
    ("pods", "workload", "ledger", "missing"),
    [
        pytest.param((pod(0), pod(1)), job(), remembered(), [], id="complete"),
        pytest.param((pod(0),), job(), remembered(), ["job-1"], id="067-vanished"),
        pytest.param((pod(0), pod(1, uid=PodUID("new"))), job(), remembered(), ["job-1"], id="087-replaced"),
        pytest.param((), job(), remembered(), [], id="all-gone"),
        pytest.param(
            (pod(0, uid=PodUID("a")), pod(1, uid=PodUID("b"))), job(), remembered(), [], id="all-replaced"
        ),
        pytest.param((pod(0, terminating_since_s=1.0),), job(), remembered(), [], id="the-rest-goes-too"),
        pytest.param((pod(0),), replace(job(), deleting=True), remembered(), [], id="owner-deleted"),
        pytest.param((pod(0),), job(replicas=1), remembered(), [], id="scaled-in"),
        pytest.param((pod(0),), job(Role.COORDINATOR), remembered(), [], id="ms-stands-alone"),
        pytest.param((pod(0),), job(), remembered(recovery=recovery()), [], id="our-own-recovery"),
        pytest.param((pod(0),), job(), remembered(members=()), [], id="never-complete"),
    ],
)
def test_a_member_is_missed_beside_others(
    pods: tuple[Pod, ...], workload: Workload, ledger: WorkloadLedger, missing: list[str]
) -> None:
    found = gather(*pods, workload=workload, ledger=ledger).faults
    assert [fault.pod for fault in found if fault.cause is Cause.MEMBER_REPLACED] == missing


@pytest.mark.parametrize(
    ("pods", "workload", "missing"),
    [
        pytest.param((), job(), ["job-0", "job-1"], id="all-gone"),
        pytest.param((pod(0, terminating_since_s=1.0), pod(1)), job(), ["job-0"], id="going"),
        pytest.param((pod(0),), job(Role.COORDINATOR), ["job-1"], id="ms"),
        pytest.param((pod(0), pod(1)), job(), [], id="complete"),
        pytest.param((pod(0, phase=PodPhase.FAILED), pod(1)), job(), [], id="a-failure-is-no-deletion"),
        pytest.param((), job(Role.TRAINING), [], id="training-cleaned-up"),
        pytest.param(
            (pod(0, phase=PodPhase.SUCCEEDED),), job(Role.TRAINING), [], id="training-being-cleaned-up"
        ),
        pytest.param((pod(0, uid=PodUID("new")),), job(Role.TRAINING), ["job-0", "job-1"], id="restarted"),
        pytest.param((), replace(job(), deleting=True), [], id="owner-deleted"),
    ],
)
def test_where_volcano_deletes_each_member_that_goes_is_missed(
    pods: tuple[Pod, ...], workload: Workload, missing: list[str]
) -> None:
    settings = Settings.model_validate({"ownership": {"owner": "volcano"}})
    found = gather(*pods, workload=workload, ledger=remembered(), settings=settings).faults
    assert [fault.pod for fault in found if fault.cause is Cause.MEMBER_REPLACED] == missing
