"""Discovery: the classic walk, the aggregated documents, and who gets which."""

from __future__ import annotations

import json

import pytest

from mindie_ha.sim import discovery
from mindie_ha.sim.requests import ApiRequest
from mindie_ha.sim.resources import RESOURCES

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


def test_group_list_names_every_group_once() -> None:
    document = discovery.root_documents("/apis", RESOURCES)
    assert document is not None
    names = [group["name"] for group in document["groups"]]
    assert names == sorted(set(names), key=names.index)
    assert "mindxdl.gitee.com" in names
    assert "" not in names


def test_custom_kind_is_listed_with_its_short_name_and_status() -> None:
    assert discovery.root_documents("/apis/mindxdl.gitee.com/v1", RESOURCES) == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "mindxdl.gitee.com/v1",
        "resources": [
            {
                "name": "ascendjobs",
                "singularName": "ascendjob",
                "namespaced": True,
                "kind": "AscendJob",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "shortNames": ["acjob"],
            },
            {
                "name": "ascendjobs/status",
                "singularName": "",
                "namespaced": True,
                "kind": "AscendJob",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_eviction_is_a_policy_kind_below_pods() -> None:
    document = discovery.root_documents("/api/v1", RESOURCES)
    assert document is not None
    [eviction] = [entry for entry in document["resources"] if entry["name"] == "pods/eviction"]
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


@pytest.mark.parametrize(
    "path", ["/apis/none.example", "/apis/apps/v9", "/api/v2", "/metrics", "/api/v1/pods"]
)
def test_other_paths_are_not_discovery(path: str) -> None:
    assert discovery.answer(ApiRequest("GET", path), RESOURCES) is None


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/json", "application/json"),
        (AGGREGATED.format("v2"), AGGREGATED.format("v2")),
        (f"{AGGREGATED.format('v2beta1')},application/json", AGGREGATED.format("v2beta1")),
        (f"{AGGREGATED.format('v3')},application/json", "application/json"),
        (f"{AGGREGATED.format('v3')},{AGGREGATED.format('v2')}", AGGREGATED.format("v2")),
    ],
    ids=["plain", "v2", "v2beta1", "unknown-falls-back", "first-known"],
)
def test_client_gets_the_form_it_asks_for(accept: str, content_type: str) -> None:
    response = discovery.answer(ApiRequest("GET", "/apis", headers={"accept": accept}), RESOURCES)
    assert response is not None
    assert response.headers["content-type"] == content_type


def test_aggregated_and_classic_form_name_the_same_resources() -> None:
    aggregated = discovery.aggregated_document("/apis", RESOURCES, version="v2")
    for group in aggregated["items"]:
        for version in group["versions"]:
            path = f"/apis/{group['metadata']['name']}/{version['version']}"
            classic = discovery.root_documents(path, RESOURCES)
            assert classic is not None
            names = [entry["name"] for entry in classic["resources"] if "/" not in entry["name"]]
            assert names == [entry["resource"] for entry in version["resources"]]


def test_version_is_json_that_clients_parse() -> None:
    response = discovery.answer(ApiRequest("GET", "/version"), RESOURCES)
    assert response is not None
    assert json.loads(response.body)["gitVersion"].startswith("v1.32.")
