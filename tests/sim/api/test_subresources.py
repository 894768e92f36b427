"""Binding, eviction, reviews, definitions."""

from __future__ import annotations

import pytest

from mindie_ha.sim.requests import ApiRequest
from tests.sim.api.conftest import PODS, Api, Object, pod

BUDGETS = "/apis/policy/v1/namespaces/mindie/poddisruptionbudgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def binding(node: str) -> Object:
    return {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": node}}


async def ready_pod(api: Api, name: str) -> None:
    await api.ok("POST", PODS, pod(name, node="n1", app="x"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api.merge(f"{PODS}/{name}/status", ready)


async def test_a_binding_places_a_pod_once(api: Api) -> None:
    await api.ok("POST", PODS, pod("a"))
    code, answer = await api("POST", f"{PODS}/a/binding", binding("n1"))
    assert (code, answer["status"]) == (201, "Success")
    bound = await api.ok("GET", f"{PODS}/a")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    code, status = await api("POST", f"{PODS}/a/binding", binding("n2"))
    assert (code, status["reason"]) == (409, "Conflict")
    assert 'pod a is already assigned to node "n1"' in status["message"]


@pytest.mark.parametrize("rule", [{"minAvailable": 2}, {"maxUnavailable": 0}, {"minAvailable": "100%"}])
async def test_an_eviction_that_a_budget_forbids_is_429(api: Api, rule: Object) -> None:
    for name in ("a", "b"):
        await ready_pod(api, name)
    selector = {"matchLabels": {"app": "x"}}
    await api.ok("POST", BUDGETS, {"metadata": {"name": "p"}, "spec": {"selector": selector, **rule}})
    code, status = await api("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
    assert (code, status["reason"]) == (429, "TooManyRequests")
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["details"]["causes"][0]["message"].endswith("needs 2 healthy pods and has 2 currently")


async def test_an_allowed_eviction_deletes_with_grace(api: Api) -> None:
    await ready_pod(api, "a")
    code, _ = await api("POST", f"{PODS}/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"})
    assert code == 201
    assert "deletionTimestamp" in (await api.ok("GET", f"{PODS}/a"))["metadata"]


async def test_everybody_may_do_everything(api: Api) -> None:
    body = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}}
    answer = await api.ok("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    assert answer["status"]["allowed"] is True


async def test_the_custom_kinds_have_definitions(api: Api) -> None:
    items = (await api.ok("GET", CRDS))["items"]
    assert "ascendjobs.mindxdl.gitee.com" in [item["metadata"]["name"] for item in items]
    assert {each["status"] for item in items for each in item["status"]["conditions"]} == {"True"}


async def test_a_new_definition_is_served_until_it_is_deleted(api: Api) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    await api.ok("POST", CRDS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    path = "/apis/example.com/v1/namespaces/mindie/widgets"
    made = await api.ok("POST", path, {"metadata": {"name": "w"}, "spec": {"a": 1}})
    assert made["spec"] == {"a": 1}
    await api.ok("DELETE", f"{CRDS}/widgets.example.com")
    gone = await api.server.handle(ApiRequest("GET", path))
    assert (gone.status, gone.body) == (404, b"404 page not found\n")
