"""The rescheduler's conclusions, vector by vector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mindie_ha.sim.actors.rescheduling_rules import (
    FaultType,
    Hardware,
    JobRules,
    fault_of,
    refusal,
    rules_of,
    scope,
)

Object = dict[str, Any]
WELL = Hardware(known=frozenset({"n1", "n2", "n3"}))
CARDS = "Ascend910-0,Ascend910-1,Ascend910-2,Ascend910-3"


def pod(
    rank: int,
    *,
    node: str = "n1",
    cards: str = CARDS,
    phase: str = "Running",
    last: int | None = None,
    block: str = "0",
    **labels: str,
) -> Object:
    status: Object = {"phase": phase}
    if last is not None:
        status["containerStatuses"] = [{"lastState": {"terminated": {"exitCode": last}}}]
    notes = {"hccl/rankIndex": str(rank), "super-pod-rank": block}
    if cards:
        notes["huawei.com/AscendReal"] = cards
    found = {name.replace("_", "-"): value for name, value in labels.items()}
    meta = {"name": f"p{rank}", "uid": f"u{rank}", "labels": found, "annotations": notes}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("seen", "hardware", "retries", "fault"),
    [
        pytest.param(pod(1, last=127), WELL, 3, FaultType.FAILED, id="D2-last-termination"),
        pytest.param(pod(1, phase="Failed"), WELL, 3, FaultType.FAILED, id="D3-failed"),
        pytest.param(pod(1, phase="Failed"), WELL, 0, None, id="D5-no-retries"),
        pytest.param(pod(1, node=""), Hardware(), 0, None, id="D7-no-node"),
        pytest.param(
            pod(1),
            replace(WELL, bad_cards={"n1": frozenset({"Ascend910-3"})}),
            0,
            FaultType.CARD,
            id="D8-used-card",
        ),
        pytest.param(
            pod(1), replace(WELL, bad_cards={"n1": frozenset({"Ascend910-5"})}), 0, None, id="D9-other-card"
        ),
        pytest.param(pod(1), Hardware(first=True), 0, None, id="D11-first-session"),
        pytest.param(pod(1), Hardware(), 0, FaultType.NODE, id="D12-missing-node"),
        pytest.param(
            pod(1, cards=""), replace(WELL, unhealthy=frozenset({"n1"})), 0, FaultType.NODE, id="D13-board"
        ),
        pytest.param(pod(1, fault_type="Separate"), WELL, 0, FaultType.RELATION, id="D16-separate"),
        pytest.param(pod(1, fault_type="software"), WELL, 0, None, id="D17-software"),
    ],
)
def test_a_pod_is_faulty_by_the_first_rule_that_fits(
    seen: Object, hardware: Hardware, retries: int, fault: FaultType | None
) -> None:
    assert fault_of(seen, hardware, JobRules(mode="force", retries=retries)) is fault


@pytest.mark.parametrize(
    ("rules", "reason", "left", "refused"),
    [
        pytest.param(JobRules("force"), FaultType.CARD, None, False, id="G2-hardware"),
        pytest.param(JobRules("force"), FaultType.FAILED, 3, True, id="G3-retries-0"),
        pytest.param(JobRules("force", 3), FaultType.FAILED, None, True, id="G4-no-record"),
        pytest.param(JobRules("force", 3), FaultType.FAILED, 0, True, id="G5-spent"),
        pytest.param(JobRules("force", 3), FaultType.FAILED, 3, False, id="G6"),
        pytest.param(JobRules("force", by_platform=True), FaultType.CARD, 3, True, id="G8-platform"),
        pytest.param(JobRules("foo"), FaultType.CARD, 3, True, id="G11-unknown-mode"),
        pytest.param(JobRules("external-force", by_platform=True), FaultType.CARD, 3, False, id="G12"),
    ],
)
def test_a_restart_needs_a_mode_no_platform_and_a_retry(
    rules: JobRules, reason: FaultType, left: int | None, refused: bool
) -> None:
    assert bool(refusal(rules, reason, left=left)) is refused


P0, P1, P2 = pod(0, block="0"), pod(1, block="1"), pod(2, block="1")
POD = JobRules("force", pod_level=True)
BLOCKS = replace(POD, super_pods=True)


@pytest.mark.parametrize(
    ("rules", "pods", "faulty", "sessions", "gone"),
    [
        pytest.param(JobRules("force"), (P0, P1), {"u1"}, 0, "u0 u1", id="S1-job-level"),
        pytest.param(POD, (P0, P1), {"u1"}, 0, "u1", id="S2-pod-level"),
        pytest.param(POD, (P0, P1), {"u0"}, 0, "u0 u1", id="S3-master"),
        pytest.param(
            POD,
            (pod(0, **{"training.kubeflow.org/replica_type": "worker"}), P1),
            {"u0"},
            0,
            "u0",
            id="S4-rank-0-is-a-worker",
        ),
        pytest.param(POD, (pod(0, cards=""), pod(1, cards="")), {"u0"}, 0, "u0", id="S5-no-cards"),
        pytest.param(JobRules("force", pod_limited=True), (P0, P1), {"u1"}, 12, "u1", id="S6-limited"),
        pytest.param(JobRules("force", process_level=True), (P0, P1), {"u1"}, 0, "u1", id="S8-process"),
        pytest.param(BLOCKS, (P0, P1, P2), {"u1"}, 5, "u1", id="S10"),
        pytest.param(BLOCKS, (P0, P1, P2), {"u1"}, 6, "u1 u2", id="S11-super-pod"),
        pytest.param(
            BLOCKS, (pod(0, block="1"), P1, P2), {"u1"}, 6, "u0 u1 u2", id="S12-master-in-the-super-pod"
        ),
        pytest.param(BLOCKS, (pod(0, block="1"), P1, P2), {"u1"}, 5, "u1", id="S13"),
        pytest.param(POD, (P0, P1, P2), {"u1"}, 12, "u0 u1 u2", id="S14-twelve-sessions"),
    ],
)
def test_the_scope_is_that_of_labels_and_sessions(
    rules: JobRules, pods: tuple[Object, ...], faulty: set[str], sessions: int, gone: str
) -> None:
    found = scope(pods, faulty, rules, sessions=sessions, blocks={"1"})
    assert [one["metadata"]["uid"] for one in found] == gone.split()


def test_labels_of_group_and_pods_are_joined() -> None:
    group = {"metadata": {"labels": {"fault-scheduling": "force", "app": "mindie-ms-coordinator"}}}
    found = rules_of(group, [pod(0, pod_rescheduling="on"), pod(1, pod_rescheduling="off")])
    assert found == JobRules("force", pod_limited=True, pod_level=False)
    assert rules_of(group, [pod(0, pod_rescheduling="on")]).pod_level
