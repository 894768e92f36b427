"""The patch formats, as real servers apply them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mindie_ha.sim.patches import json_patch, merge_patch, strategic_merge_patch
from mindie_ha.sim.statuses import StatusError
from tests.sim.api.conftest import GROUPS, MAPS, PODS, Api, config_map, pod

STRATEGIC = "application/strategic-merge-patch+json"
TWO: dict[str, Any] = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}


def containers(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(items), **more}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (containers({"name": "b", "image": "2"}), [("a", "1"), ("b", "2")]),
        (containers({"name": "c", "image": "3"}), [("c", "3"), ("a", "1"), ("b", "1")]),
        (containers({"name": "a", "$patch": "delete"}), [("b", "1")]),
        (containers({"name": "z", "image": "9"}, {"$patch": "replace"}), [("z", "9")]),
        (
            containers(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
            [("b", "1"), ("a", "1")],
        ),
    ],
    ids=["merge", "append", "delete", "replace", "order"],
)
def test_strategic_merge_knows_list_keys(patch: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    merged = strategic_merge_patch(copy.deepcopy(TWO), patch)
    assert [(each["name"], each["image"]) for each in merged["spec"]["containers"]] == expected


def test_strategic_merge_replaces_taints_and_merges_finalizers_and_conditions() -> None:
    old = {
        "metadata": {"finalizers": ["a"]},
        "spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}]},
    }
    patch = {
        "metadata": {"finalizers": ["b"]},
        "spec": {"taints": [{"key": "y", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    merged = strategic_merge_patch(old, patch)
    assert merged["metadata"]["finalizers"] == ["a", "b"]
    assert [taint["key"] for taint in merged["spec"]["taints"]] == ["y"]
    assert [each["status"] for each in merged["status"]["conditions"]] == ["False", "False"]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        (
            [{"op": "replace", "path": "/a", "value": {"x/y": 1}}, {"op": "remove", "path": "/a/x~1y"}],
            {"a": {}},
        ),
        ([{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1, 2], "b": [1, 2]}),
        ([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}),
        ([{"op": "test", "path": "/a/1", "value": 2}], {"a": [1, 2]}),
    ],
    ids=["append", "insert", "remove", "escape", "copy", "move", "test"],
)
def test_json_patch_follows_the_rfc(operations: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    assert json_patch({"a": [1, 2]}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "test", "path": "/a/0", "value": 9},
        {"op": "add", "path": "/a/7", "value": 9},
        {"op": "add", "path": "a", "value": 9},
        {"op": "jump", "path": "/a"},
    ],
)
def test_a_json_patch_that_cannot_be_applied_is_422(operation: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch({"a": [1, 2]}, [operation])
    assert caught.value.code == 422


def test_merge_patch_removes_with_null_and_replaces_lists() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "l": [1]}, {"a": {"b": None}, "l": [2]}) == {
        "a": {"c": 2},
        "l": [2],
    }


async def test_custom_kinds_refuse_strategic_merge(api: Api) -> None:
    await api.ok("POST", GROUPS, {"metadata": {"name": "a"}})
    code, status = await api("PATCH", f"{GROUPS}/a", {"metadata": {}}, content_type=STRATEGIC)
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")


async def test_a_patch_with_a_version_is_optimistic(api: Api) -> None:
    await api.ok("POST", MAPS, config_map("a"))
    code, status = await api.merge(f"{MAPS}/a", {"metadata": {"resourceVersion": "1"}, "data": {"k": "v"}})
    assert (code, status["reason"]) == (409, "Conflict")


async def test_a_patch_of_another_uid_is_refused(api: Api) -> None:
    await api.ok("POST", PODS, pod("a"))
    code, status = await api.merge(f"{PODS}/a", {"metadata": {"uid": "other", "labels": {"x": "y"}}})
    assert (code, status["reason"]) == (422, "Invalid")
