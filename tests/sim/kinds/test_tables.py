"""Tables as `kubectl get` prints them."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.sim import cells
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.tables import render

NOW_S = 1_800_000_000.0  # 2027-01-15T08:00:00Z
BORN = "2027-01-15T07:58:30Z"


def rows(kind: str, *objects: dict[str, Any], wide: bool = False) -> list[list[Any]]:
    table = render(by_kind(kind), objects, NOW_S)
    shown = [i for i, column in enumerate(table["columnDefinitions"]) if wide or column["priority"] == 0]
    head = [table["columnDefinitions"][i]["name"] for i in shown]
    return [head, *([row["cells"][i] for i in shown] for row in table["rows"])]


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "mindie", "creationTimestamp": BORN}, **more}


def test_running_pod() -> None:
    pod = obj(
        "prefill-0",
        spec={"nodeName": "node-1", "containers": [{"name": "ascend"}]},
        status={
            "phase": "Running",
            "podIP": "127.0.1.2",
            "containerStatuses": [{"ready": True, "restartCount": 0, "state": {"running": {}}}],
        },
    )
    assert rows("Pod", pod, wide=True) == [
        ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"],
        ["prefill-0", "1/1", "Running", "0", "90s", "127.0.1.2", "node-1", "<none>", "<none>"],
    ]


@pytest.mark.parametrize(
    ("status", "deleted", "word"),
    [
        ({"phase": "Pending"}, False, "Pending"),
        ({"phase": "Running"}, True, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, True, "Unknown"),
        ({"phase": "Failed", "reason": "Evicted"}, False, "Evicted"),
        (
            {
                "phase": "Failed",
                "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}],
            },
            False,
            "Error",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 137}}}]},
            False,
            "ExitCode:137",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            },
            False,
            "CrashLoopBackOff",
        ),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, False, "Init:0/1"),
    ],
    ids=["pending", "terminating", "node-lost", "evicted", "error", "exit-code", "crash-loop", "init"],
)
def test_pod_status_is_the_word_people_know(status: dict[str, Any], deleted: bool, word: str) -> None:
    pod = obj("p", spec={"containers": [{}], "initContainers": [{}]}, status=status)
    if deleted:
        pod["metadata"]["deletionTimestamp"] = BORN
    assert cells.pod_status(pod) == word


def test_cordoned_node_that_is_not_ready() -> None:
    node = obj(
        "node-1",
        spec={"unschedulable": True},
        status={
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "nodeInfo": {"kubeletVersion": "v1.32.0"},
        },
    )
    node["metadata"]["labels"] = {"node-role.kubernetes.io/worker": ""}
    assert rows("Node", node) == [
        ["Name", "Status", "Roles", "Age", "Version"],
        ["node-1", "NotReady,SchedulingDisabled", "worker", "90s", "v1.32.0"],
    ]


def test_ascend_job_prints_its_last_condition() -> None:
    job = obj("prefill-0", status={"conditions": [{"type": "Created"}, {"type": "Running"}]})
    assert rows("AscendJob", job, obj("new")) == [
        ["Name", "State", "Age"],
        ["prefill-0", "Running", "90s"],
        ["new", None, "90s"],
    ]


@pytest.mark.parametrize(
    ("kind", "body", "cells_after_name"),
    [
        ("ConfigMap", {"data": {"a": "1", "b": "2"}}, [2, "90s"]),
        ("Namespace", {"status": {"phase": "Active"}}, ["Active", "90s"]),
        ("Lease", {"spec": {"holderIdentity": "mindie-ha-1"}}, ["mindie-ha-1", "90s"]),
        ("PriorityClass", {"value": 1000}, [1000, False, "90s", "PreemptLowerPriority"]),
        ("Deployment", {"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}, ["2/3", 0, 0, "90s"]),
        (
            "Service",
            {"spec": {"clusterIP": "127.0.0.1", "ports": [{"port": 8899}]}},
            ["ClusterIP", "127.0.0.1", "<none>", "8899/TCP", "90s"],
        ),
        (
            "PodGroup",
            {"status": {"phase": "Running", "running": 2}, "spec": {"minMember": 2}},
            ["Running", 2, 2, "90s"],
        ),
    ],
)
def test_other_kinds(kind: str, body: dict[str, Any], cells_after_name: list[Any]) -> None:
    [_, row] = rows(kind, obj("x", **body))
    assert row == ["x", *cells_after_name]


def test_event_shows_what_happened_to_what() -> None:
    event = obj(
        "e1",
        type="Warning",
        reason="ChipFault",
        message="chip 3 fails\n",
        involvedObject={"kind": "Pod", "name": "prefill-0"},
        lastTimestamp=BORN,
    )
    assert rows("Event", event)[1] == ["90s", "Warning", "ChipFault", "pod/prefill-0", "chip 3 fails"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("None", None),
        (
            "Metadata",
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": obj("c")["metadata"],
            },
        ),
        ("Object", obj("c")),
    ],
)
def test_row_carries_the_object_that_was_asked_for(include: str, expected: Any) -> None:
    table = render(by_kind("ConfigMap"), [obj("c")], NOW_S, include_object=include)
    assert table["rows"][0].get("object") == expected


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (-1, "0s"), (-5, "<invalid>"), (119, "119s"), (120, "2m"), (330, "5m30s"), (605, "10m"),
        (10_799, "179m"), (11_400, "3h10m"), (36_000, "10h"), (180_000, "2d2h"), (9 * 86_400, "9d"),
        (800 * 86_400, "2y70d"),
    ],
)  # fmt: skip
def test_ages_are_rounded_as_kubectl_does(seconds: int, text: str) -> None:
    assert cells.duration(seconds) == text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".status.phase", "Running"),
        (".items[0].a", 1),
        (".items[-1:].a", 2),
        ('.items[?(@.a=="2")].b', "found"),
        (".metadata.labels['x/y']", "z"),
        (".status.none.deeper", None),
        (".items[9].a", None),
    ],
)
def test_printer_column_paths(path: str, value: Any) -> None:
    thing = {
        "status": {"phase": "Running"},
        "items": [{"a": 1}, {"a": 2, "b": "found"}],
        "metadata": {"labels": {"x/y": "z"}},
    }
    assert cells.json_path(thing, path) == value
