"""A synthetic run that went well: one instance replaced, everything observed. Tests break it on purpose."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mindie_ha.demo.observations import (
    Delivery,
    Injected,
    InstanceTableSeen,
    IsolationSeen,
    JobSeen,
    LedgerSeen,
    NodeSeen,
    Observations,
    PodLife,
    TableSeen,
    Write,
)

P0, D0, MS = "mindie/p0", "mindie/d0", "mindie/controller"
CONTROLLER, CONFIG_MAP, URL = "mindie/controller-master-0", "mindie/global-ranktable", "http://push"
CHANNELS = ((CONFIG_MAP, "configmap"), (CONTROLLER, "grpc"), (URL, "http"))
FAULT_S, STOP_S, BACK_S, CLOSED_S = 40.0, 41.0, 45.0, 80.0


def pod(workload: str, uid: str, ip: str, **more: Any) -> PodLife:
    name = f"{workload.rpartition('/')[2]}-master-0"
    return PodLife(
        workload,
        name,
        "mindie",
        uid,
        **{"created_s": 1.0, "ready": True, "phase": "Running", "ip": ip, **more},
    )


def table_text(*groups: tuple[int, str]) -> str:
    """A valid global table with a Coordinator, a Controller and (group id, pod IP) instances."""

    def group(group_id: int, ip: str, **more: Any) -> dict[str, Any]:
        server = {"server_id": f"10.0.0.{group_id + 1}", "server_ip": ip, **more}
        return {"group_id": str(group_id), "server_count": "1", "server_list": [server]}

    def instance(group_id: int, ip: str) -> dict[str, Any]:
        device = {
            "device_id": "0",
            "device_ip": f"29.0.{group_id}.1",
            "device_logical_id": "0",
            "rank_id": "0",
        }
        return {**group(group_id, ip, device=[device]), "deploy_server": str(group_id % 2)}

    listed = [group(0, "127.0.9.1"), group(1, "127.0.9.2"), *(instance(*each) for each in groups)]
    return json.dumps({"version": "1.0", "status": "completed", "server_group_list": listed})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def table(version: int, at_s: float, generation: int, text: str) -> TableSeen:
    return TableSeen(at_s, version, "mindie/ms", generation, digest(text), text)


def recovery(*targets: str, **more: Any) -> dict[str, Any]:
    return {
        "epoch": 1,
        "intent": {"cause": "ChipUnhealthy", "summary": "a card failed"},
        "rung": "job",
        "phase": "stop",
        "opened_at_s": FAULT_S + 0.5,
        "targets": [{"uid": uid} for uid in targets],
        "attempts": {"job": 1},
        "history": [{"rung": "job", "phase": "isolate", "start_s": 40.5, "end_s": 41.0, "exit": "visible"}],
        **more,
    }


def ledger(version: int, at_s: float, workload: str, **body: Any) -> LedgerSeen:
    return LedgerSeen(at_s, version, workload, {"epoch": 1, "software_retries_spent": 0, **body})


def a_good_run() -> Observations:
    """What an observer sees of a recovery that went as it must."""
    before = table_text((2, "127.1.0.1"), (3, "127.1.0.2"))
    without = table_text((3, "127.1.0.2"))
    after = table_text((2, "127.1.0.3"), (3, "127.1.0.2"))
    seen = Observations()
    seen.faults = [Injected(FAULT_S, "node-1", "Ascend910-3", "80E18005", "mindie/p0-master-0")]
    old = pod(
        P0,
        "p-old",
        "127.1.0.1",
        node="node-1",
        devices=("Ascend910-3",),
        deleted_s=STOP_S,
        deleted_version=120,
    )
    new = pod(
        P0, "p-new", "127.1.0.3", node="node-2", devices=("Ascend910-0",), created_s=42.0, created_version=130
    )
    seen.pods = {
        each.uid: each
        for each in (old, new, pod(D0, "d-old", "127.1.0.2", node="node-3"), pod(MS, "c-old", "127.0.9.2"))
    }
    seen.jobs = {key: JobSeen(key, 1) for key in (P0, D0, MS)}
    seen.ledgers = [
        ledger(110, 40.5, P0, recovery=recovery("p-old")),
        ledger(
            200,
            CLOSED_S,
            P0,
            closed=[recovery("p-old", rungs=["job"], outcome="recovered", closed_at_s=CLOSED_S)],
        ),
    ]
    seen.tables = [table(50, 20.0, 1, before), table(111, 41.0, 2, without), table(150, BACK_S, 3, after)]
    seen.deliveries = [
        Delivery(each.at_s + 0.2, channel, peer, each.digest, each.text)
        for each in seen.tables
        for peer, channel in CHANNELS
    ]
    entry = {
        "id": "chip:Ascend910-3",
        "wanted_by": ["recovery:mindie/p0#1"],
        "reason": "chip",
        "undo": "kubectl …",
    }
    seen.isolations = [IsolationSeen(40.6, 112, "node-1", (entry,)), IsolationSeen(44.0, 141, "node-1", ())]
    seen.nodes = [NodeSeen(40.7, 113, "node-1", True), NodeSeen(44.0, 140, "node-1", False)]
    seen.instance_tables = [InstanceTableSeen(44.5, P0, frozenset({"p-new"}))]
    seen.writes = [Write(STOP_S, "delete", "pods", "mindie/p0-master-0", "p-old", "mindie-ha", 200)]
    seen.subscribers = {peer for peer, _ in CHANNELS}
    seen.quiet_from_s = 90.0
    return seen
