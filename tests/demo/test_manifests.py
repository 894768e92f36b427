"""The scenario manifests are complete, quoted, and fit the machines they are meant for."""

from __future__ import annotations

from typing import Any

import pytest

from mindie_ha.demo import manifests

Object = dict[str, Any]
CARDS = {"pd-a2": 8, "pd-a3": 16, "pd-ha": 8, "single-server": 8, "seed": 8}
EVERY = pytest.mark.parametrize("name", manifests.NAMES)
EVERY_SERVICE = pytest.mark.parametrize("name", sorted(CARDS))


def of_kind(name: str, kind: str) -> list[Object]:
    return [item for item in manifests.load(name) if item["kind"] == kind]


def servers(name: str) -> list[Object]:
    return [
        job for job in of_kind(name, "AscendJob") if job["metadata"]["labels"]["app"] == "mindie-ms-server"
    ]


def templates(job: Object) -> list[tuple[int, Object]]:
    return [(spec["replicas"], spec["template"]) for spec in job["spec"]["replicaSpecs"].values()]


def cards_per_pod(template: Object) -> int:
    requests: Object = template["spec"]["containers"][0]["resources"]["requests"]
    return int(requests["huawei.com/Ascend910"])


@EVERY
def test_labels_and_annotations_are_strings(name: str) -> None:
    def metas(value: object) -> list[Object]:
        if isinstance(value, dict):
            found = [value["metadata"]] if "metadata" in value else []
            return found + [meta for child in value.values() for meta in metas(child)]
        return [meta for child in value for meta in metas(child)] if isinstance(value, list) else []

    for meta in metas(list(manifests.load(name))):
        values = [*meta.get("labels", {}).values(), *meta.get("annotations", {}).values()]
        assert all(isinstance(value, str) for value in values), meta


@EVERY_SERVICE
def test_the_namespace_and_job_id_are_one(name: str) -> None:
    jobs = of_kind(name, "AscendJob")
    pods = [template for job in jobs for _, template in templates(job)]

    assert {job["metadata"]["namespace"] for job in jobs} == {"mindie"}
    assert len({item["metadata"]["labels"]["jobID"] for item in jobs + pods}) == 1
    assert "xxxx" not in manifests.text(name)


@EVERY
def test_gang_size_is_the_number_of_pods(name: str) -> None:
    for job in of_kind(name, "AscendJob"):
        pods = sum(replicas for replicas, _ in templates(job))
        assert job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] == pods


@EVERY_SERVICE
def test_every_server_job_has_its_rings_config_and_readiness_probe(name: str) -> None:
    configs = {config["metadata"]["name"]: config for config in of_kind(name, "ConfigMap")}
    for job in servers(name):
        config = configs[f"rings-config-{job['metadata']['name']}"]
        assert config["metadata"]["labels"]["mx-consumer-cim"] == "true"
        assert config["metadata"]["labels"]["jobID"] == job["metadata"]["labels"]["jobID"]
        for _, template in templates(job):
            assert "readinessProbe" in template["spec"]["containers"][0]
            volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
            assert volumes["ascend-910-config"]["configMap"]["name"] == config["metadata"]["name"]
    assert "initializing" in configs["global-ranktable"]["data"]["global_ranktable.json"]


@EVERY
def test_mounts_are_legal(name: str) -> None:
    for job in of_kind(name, "AscendJob"):
        for _, template in templates(job):
            mounts = template["spec"]["containers"][0]["volumeMounts"]
            paths = [mount["mountPath"] for mount in mounts]
            assert len(paths) == len(set(paths))
            assert {m["name"] for m in mounts} == {v["name"] for v in template["spec"]["volumes"]}


@EVERY_SERVICE
def test_servers_fit_ten_nodes_with_one_instance_to_spare(name: str) -> None:
    pods = [template for job in servers(name) for n, template in templates(job) for _ in range(n)]

    assert {cards_per_pod(template) for template in pods} == {CARDS[name]}
    assert len(pods) + 2 <= 10


@pytest.mark.parametrize("name", ["pd-a2", "pd-a3", "pd-ha"])
def test_there_are_two_prefill_and_two_decode_instances(name: str) -> None:
    labels = {
        job["metadata"]["name"]: job["metadata"]["labels"]["grt-group/deploy-server"] for job in servers(name)
    }

    assert labels == {
        "mindie-server-p0": "0",
        "mindie-server-p1": "0",
        "mindie-server-d0": "1",
        "mindie-server-d1": "1",
    }


def test_a3_instances_fill_one_super_pod_block() -> None:
    for job in servers("pd-a3"):
        cards = sum(replicas * cards_per_pod(template) for replicas, template in templates(job))
        assert job["metadata"]["annotations"]["sp-block"] == str(cards)


def test_the_seed_is_as_in_the_guide() -> None:
    jobs = {job["metadata"]["name"]: job for job in of_kind("seed", "AscendJob")}
    (config,) = [c for c in of_kind("seed", "ConfigMap") if c["metadata"]["name"].startswith("rings-config-")]

    assert set(jobs) == {"mindie-controller", "mindie-coordinator", "mindie-server-0"}
    assert jobs["mindie-coordinator"]["metadata"]["labels"]["pod-rescheduling"] == "on"
    assert not [label for label in config["metadata"]["labels"] if label.startswith("grt-")]


@pytest.mark.parametrize("role", ["controller", "coordinator"])
def test_active_and_standby_are_alike_and_keep_apart(role: str) -> None:
    [job] = [
        each for each in of_kind("pd-ha", "AscendJob") if each["metadata"]["name"] == f"mindie-ms-{role}"
    ]
    [(_, active), (_, standby)] = templates(job)
    [term] = active["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert active == standby
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= active["metadata"]["labels"].items()
    assert job["metadata"]["labels"]["pod-rescheduling"] == "on"


def test_loaded_objects_are_independent() -> None:
    first, second = (spec["template"] for spec in servers("pd-a2")[0]["spec"]["replicaSpecs"].values())

    assert first == second
    assert first is not second


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(KeyError, match="pd-a2"):
        manifests.load("nothing")
