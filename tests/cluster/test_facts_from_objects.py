"""From bytes to facts: what is read, what counts as absent, what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.cluster import convert, workload_kinds
from mindie_ha.cluster.slim import (
    MODELS,
    Page,
    SlimAscendJob,
    SlimNode,
    SlimOwner,
    SlimPod,
    SlimVolcanoJob,
    slim,
)
from mindie_ha.cluster.sources import OWNERS, PODS
from mindie_ha.cluster.watches import Bookmark, Changed, event_of
from mindie_ha.model.errors import ClusterError, Gone, InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.workloads import Role

LOOPING = {"waiting": {"reason": "CrashLoopBackOff"}}
META = {"name": "a", "namespace": "mindie", "uid": "u", "resourceVersion": "7"}


def pod(**parts: Any) -> Any:
    meta = {**META, **parts.pop("metadata", {})}
    return convert.pod(slim({"metadata": meta, **parts}, SlimPod, kind="Pod"))


def ended(code: int, **more: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, **more}}


@pytest.mark.parametrize(
    ("owners", "uid"),
    [
        ([{"kind": "AscendJob", "uid": "j", "controller": True}], "j"),
        ([{"kind": "Other", "uid": "x"}, {"kind": "AscendJob", "uid": "j", "controller": True}], "j"),
        ([{"kind": "AscendJob", "name": "j", "uid": "j"}], "j"),
        ([{"kind": "Other", "uid": "x"}], ""),
        ([], ""),
        (None, ""),
    ],
    ids=["controller", "second", "case-061-no-flag", "stranger", "empty", "null"],
)
def test_the_owner_of_a_pod(owners: object, uid: str) -> None:
    assert pod(metadata={"ownerReferences": owners}).owner_uid == uid


@pytest.mark.parametrize(
    ("annotations", "devices"),
    [
        ({"huawei.com/AscendReal": "Ascend910-0,Ascend910-1"}, ("Ascend910-0", "Ascend910-1")),
        ({"huawei.com/AscendReal": "Ascend910-0", "huawei.com/Ascend910": "Ascend910-7"}, ("Ascend910-0",)),
        ({"huawei.com/Ascend910": " Ascend910-3 ,, Ascend910-4"}, ("Ascend910-3", "Ascend910-4")),
        ({"huawei.com/npu": "npu-1"}, ("npu-1",)),
        ({}, ()),
    ],
    ids=["real", "real-before-asked", "asked-with-blanks", "a5", "none"],
)
def test_the_cards_that_a_pod_holds(annotations: dict[str, str], devices: tuple[str, ...]) -> None:
    assert pod(metadata={"annotations": annotations}).devices == devices


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def test_pods_that_ask_for_the_same_nodes_are_alike() -> None:
    one, two = {"zone": "a", "arch": "arm"}, {"arch": "arm", "zone": "a"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}

    def placement(**spec: object) -> str:
        return pod(spec=spec).placement  # type: ignore[no-any-return]

    assert placement() == placement(nodeSelector={}, affinity=None) == ""
    assert placement(nodeSelector=one) == placement(nodeSelector=two) != ""
    assert len({placement(nodeSelector=one), placement(nodeSelector=one, affinity=apart), placement()}) == 3
    assert placement(affinity=deep(600)) == placement(nodeSelector={"a": 1 << 80}) == ""


@pytest.mark.parametrize(
    ("text", "rank"),
    [("0", 0), ("12", 12), ("-1", None), ("x", None), ("", None), ("١", None), ("99999999", None)],  # noqa: RUF001
)
def test_a_rank_that_is_no_number_is_no_rank(text: str, rank: int | None) -> None:
    assert pod(metadata={"annotations": {"hccl/rankIndex": text}}).rank == rank


@pytest.mark.parametrize(
    ("statuses", "code", "waiting"),
    [
        ([{"state": ended(137)}], 137, ""),
        ([{"state": ended(0)}, {"state": ended(3)}], 3, ""),
        (
            [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(1)}],
            1,
            "CrashLoopBackOff",
        ),
        ([{"state": {"running": {}}, "lastState": ended(1)}], None, ""),
        ([{"state": {"waiting": {"reason": "ContainerCreating"}}}], None, "ContainerCreating"),
    ],
    ids=["failed", "second-container", "case-075-crash-loop", "runs-again", "creating"],
)
def test_how_containers_ended_and_what_they_wait_for(
    statuses: list[dict[str, Any]], code: int | None, waiting: str
) -> None:
    found = pod(status={"phase": "Running", "containerStatuses": statuses})
    assert (found.exit_code, found.waiting_reason) == (code, waiting)


def test_times_of_a_pod() -> None:
    found = pod(
        metadata={
            "creationTimestamp": "1970-01-01T00:00:10Z",
            "deletionTimestamp": "1970-01-01T00:02:00Z",
            "deletionGracePeriodSeconds": 30,
        },
        spec={"terminationGracePeriodSeconds": 60},
        status={
            "phase": "Running",
            "containerStatuses": [
                {
                    "restartCount": 2,
                    "state": {"running": {"startedAt": "1970-01-01T00:00:50Z"}},
                    "lastState": ended(1, finishedAt="1970-01-01T00:00:40Z"),
                }
            ],
        },
    )
    assert found.created_at_s == 10
    assert found.terminating_since_s == 90, "the API writes the end of the grace, not the request"
    assert (found.grace_s, found.termination_grace_s) == (30, 60)
    assert (found.started_at_s, found.last_restart_at_s, found.restarts) == (50, 40, 2)


@pytest.mark.parametrize(
    ("containers", "probed"),
    [
        ([{"name": "ascend", "readinessProbe": {"exec": {}}}, {"name": "side"}], True),
        ([{"name": "ascend"}, {"name": "side", "readinessProbe": {}}], False),
        ([{"name": "other", "readinessProbe": {}}], True),
        ([], False),
    ],
    ids=["main", "only-sidecar", "no-main", "none"],
)
def test_whether_readiness_means_something(containers: list[dict[str, Any]], probed: bool) -> None:
    assert pod(spec={"containers": containers}).has_readiness_probe is probed


@pytest.mark.parametrize(
    ("phase", "expected"),
    [("Failed", PodPhase.FAILED), ("", PodPhase.PENDING), ("Strange", PodPhase.UNKNOWN)],
)
def test_an_unknown_phase_is_unknown(phase: str, expected: PodPhase) -> None:
    assert pod(status={"phase": phase}).phase is expected


def node(**status: Any) -> Any:
    return convert.node(
        slim({"metadata": META, "status": status}, SlimNode, kind="Node"), not_ready_since_s=5.0
    )


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "MemoryPressure", "status": "False"}], False),
        (None, False),
    ],
    ids=["true", "unknown", "missing", "null"],
)
def test_a_node_is_ready_only_if_it_says_so(conditions: object, ready: bool) -> None:
    found = node(conditions=conditions)
    assert found.ready is ready
    assert (found.not_ready_since_s is None) is ready


def test_npus_of_a_node() -> None:
    assert node(capacity={"cpu": "64", "huawei.com/Ascend910": "16", "huawei.com/x": "9"}).capacity_npu == 16
    assert node(capacity={"huawei.com/Ascend910": 8}).capacity_npu == 8
    assert node(capacity={"huawei.com/Ascend910": "lots"}).capacity_npu == 0


def job(labels: dict[str, str], specs: dict[str, Any], **status: Any) -> Any:
    raw = {"metadata": {**META, "labels": labels}, "spec": {"replicaSpecs": specs}, "status": status}
    return workload_kinds.workload(slim(raw, SlimAscendJob, kind="AscendJob"))


def test_a_workload_from_an_ascend_job() -> None:
    template = {
        "spec": {
            "containers": [{"name": "ascend", "env": [{"name": "X"}, {"name": "ROLE", "value": "d"}]}],
            "volumes": [{"name": "global-ranktable", "configMap": {"name": "grt", "defaultMode": 416}}],
        }
    }
    found = job(
        {"app": "mindie-ms-server", "jobID": "svc", "fault-scheduling": "force"},
        {
            "Worker": {"replicas": 3, "restartPolicy": "OnFailure"},
            "Master": {"restartPolicy": "Never", "template": template},
        },
    )
    assert (found.role, found.pd_role, found.job_id) == (Role.SERVER, PdRole.DECODE, "svc")
    assert (found.replicas, found.restart_policy, found.table_config_map) == (4, "Never", "grt")
    assert found.podgroup == ObjectKey("mindie", "a-u")


def test_a_job_that_its_owner_gave_up_says_why() -> None:
    condition = {"type": "Failed", "status": "True", "reason": "JobFailed", "message": "limit reached"}
    found = job({}, {}, conditions=[condition])
    assert (found.failed, found.failed_message) == (True, "JobFailed: limit reached")
    assert not job({}, {}, conditions=[{**condition, "status": "False"}]).failed


def vcjob(spec: dict[str, Any], **state: str) -> Any:
    raw = {"metadata": {**META, "labels": {"fault-scheduling": "grace"}}, "spec": spec}
    return workload_kinds.workload(slim({**raw, "status": {"state": state}}, SlimVolcanoJob, kind="Job"))


def test_a_workload_from_a_vcjob() -> None:
    task = {"replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": []}}}
    found = vcjob({"tasks": [{"name": "master", **task}, {"name": "worker", **task}]}, phase="Running")
    assert (found.kind, found.role, found.replicas, found.restart_policy) == (
        "Job",
        Role.TRAINING,
        4,
        "Never",
    )
    assert (found.failed, found.podgroup) == (False, ObjectKey("mindie", "a-u"))


@pytest.mark.parametrize(
    ("spec", "limit"), [({"maxRetry": 7}, 7), ({"maxRetry": 0}, 3), ({}, 3)], ids=["7", "0", "none"]
)
def test_a_vcjob_that_is_failed_names_its_limit(spec: dict[str, Any], limit: int) -> None:
    found = vcjob(spec, phase="Failed", message="gave up")
    assert found.failed
    assert found.failed_message == f"gave up; maxRetry is {limit}"
    assert not vcjob(spec, phase="Restarting").failed


def listed(items: object, **metadata: str) -> bytes:
    return orjson.dumps({"kind": "PodList", "metadata": metadata, "items": items})


def test_one_malformed_item_costs_only_itself() -> None:
    items = [{"metadata": META}, {"metadata": {**META, "name": "b", "labels": {"x": 1}}}, None, 7]
    page = Page(listed(items, resourceVersion="9"), SlimPod, kind="Pod")
    assert [item.key.name for item in page.objects] == ["a"]
    assert [key for key, _ in page.refused] == [ObjectKey("mindie", "b"), None, None]
    assert "Pod mindie/b: field metadata.labels.x" in str(page.refused[0][1])
    assert page.resource_version == "9"


def nested(depth: int) -> bytes:
    return b'{"a":[' * (depth // 2) + b'"]}"' + b"]}" * (depth // 2)


@pytest.mark.parametrize("depth", [90, 190, 700, 1100, 9000])
def test_what_is_nested_deeper_than_anything_we_read_costs_nobody_anything(depth: int) -> None:
    odd = b'{"metadata":{"name":"b","namespace":"mindie"},"spec":{"replicaSpecs":null,"runPolicy":%s}}'
    good = orjson.dumps({"metadata": META, "spec": {"replicaSpecs": {"Master": {"replicas": 2}}}})
    page = Page(
        b'{"kind":"AscendJobList","metadata":{},"items":[%s,%s]}' % (odd % nested(depth), good),
        SlimAscendJob,
        kind="AscendJob",
    )
    assert [item.key.name for item in page.objects] == ["b", "a"]
    assert page.objects[1].spec.replica_specs["Master"].replicas == 2
    assert page.refused == []
    event = event_of(b'{"type":"ADDED","object":%s}' % (odd % nested(depth)), OWNERS[0])
    assert isinstance(event, Changed)
    assert event.new is not None


@pytest.mark.parametrize("cut", [1, 40, 4000])
def test_a_deep_page_that_was_cut_off_is_no_page(cut: int) -> None:
    item = b'{"metadata":{"name":"b"},"spec":{"runPolicy":%s}}' % nested(3000)
    whole = b'{"kind":"AscendJobList","metadata":{},"items":[%s,%s]}' % (item, item)
    with pytest.raises(InputError):
        Page(whole[:-cut], SlimAscendJob, kind="AscendJob")


@pytest.mark.parametrize("items", [None, []], ids=["null", "empty"])
def test_a_list_without_items_is_empty(items: object) -> None:
    assert Page(listed(items), SlimPod, kind="Pod").objects == []


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'{"kind":"PodList","metadata":{},"items":3}',
        b'{"kind":"PodList","metadata":{},"items":{}}',
        b'{"kind":"PodList","metadata":7,"items":[]}',
        b'{"kind":"PodList","items":[]}',
        b'{"metadata":{"resourceVersion":"9"},"items":[]}',
        b'{"kind":"Status","metadata":{},"status":"Failure","message":"moved"}',
    ],
)
def test_what_is_no_list_is_no_empty_list(body: bytes) -> None:
    with pytest.raises(InputError):
        Page(body, SlimPod, kind="Pod")


def test_null_is_absent_and_both_ways_of_reading_a_page_agree() -> None:
    plain = {
        "metadata": {**META, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "Running"},
    }
    nulled = {**plain, "spec": None, "status": {"phase": "Running", "conditions": None}}
    pages = [Page(listed([item], **{"continue": "c"}), SlimPod, kind="Pod") for item in (plain, nulled)]
    assert pages[0].objects == pages[1].objects
    assert pages[0].continue_token == pages[1].continue_token == "c"


def line(kind: str, body: object) -> bytes:
    return orjson.dumps({"type": kind, "object": body})


def test_lines_of_a_watch() -> None:
    assert event_of(line("BOOKMARK", {"metadata": {"resourceVersion": "8"}}), PODS) == Bookmark("8")
    added = event_of(line("ADDED", {"metadata": META}), PODS)
    assert isinstance(added, Changed)
    assert (added.key, added.resource_version) == (ObjectKey("mindie", "a"), "7")
    gone = event_of(line("DELETED", {"metadata": META, "spec": 3}), PODS)
    assert gone == Changed(ObjectKey("mindie", "a"), None, "7", uid="u")
    refused = event_of(line("MODIFIED", {"metadata": META, "spec": {"replicaSpecs": [1]}}), OWNERS[0])
    assert isinstance(refused, Changed)
    assert refused.refused is not None


@pytest.mark.parametrize(
    "raw",
    [b"{", b"[]", b"{}", b'{"type":"ADDED","object":{"metadata":{}}}', b'{"type":"LOST","object":{}}'],
)
def test_an_unreadable_line_asks_for_a_list(raw: bytes) -> None:
    with pytest.raises(Gone):
        event_of(raw, PODS)


FIELDS = st.sampled_from(
    ["metadata", "spec", "status", "name", "labels", "annotations", "containers", "conditions", "taints",
     "ownerReferences", "creationTimestamp", "containerStatuses", "state", "terminated", "exitCode", "uid",
     "replicaSpecs", "Master", "replicas", "template", "volumes", "capacity", "data", "phase", "type"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)


@given(kind=st.sampled_from(sorted(MODELS)), body=JSON)
def test_no_content_raises_anything_but_a_refusal(kind: str, body: object) -> None:
    content = {"metadata": META, **body} if isinstance(body, dict) else body
    try:
        item = slim(content, MODELS[kind], kind=kind)
    except InputError:
        return
    match item:
        case SlimPod():
            convert.pod(item)
        case SlimNode():
            convert.node(item)
        case SlimOwner():
            workload_kinds.workload(item)


@given(raw=st.binary(max_size=60) | st.builds(line, st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]), JSON))
def test_no_line_raises_anything_but_a_cluster_error(raw: bytes) -> None:
    try:
        event_of(raw, PODS)
    except ClusterError:
        return
