"""The manifests fit the Kubernetes schema, and fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from mindie_ha.cli.configs import load_settings
from mindie_ha.cluster.leader_labels import LABEL_LEADER, LEADER, OwnPod, own_pod
from mindie_ha.cluster.permissions import needed
from mindie_ha.model.ids import ObjectKey

FOLDER = Path(__file__).resolve().parents[2] / "manifests"
OBJECTS: list[dict[str, Any]] = [
    document
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]


EXAMPLES: list[dict[str, Any]] = [
    document
    for path in sorted((FOLDER / "examples").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]


def named(kind: str, name: str) -> dict[str, Any]:
    return next(each for each in OBJECTS if each["kind"] == kind and each["metadata"]["name"] == name)


@pytest.mark.parametrize(
    "document", [*OBJECTS, *EXAMPLES], ids=lambda each: f"{each['kind']}-{each['metadata']['name']}"
)
def test_manifest_fits_the_schema(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.28", strict=True)


def test_kustomization_lists_every_file() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(listed) == sorted(
        path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_services_select_the_pods_and_reach_named_ports() -> None:
    template = named("Deployment", "mindie-ha")["spec"]["template"]
    ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
    for document in OBJECTS:
        if document["kind"] == "Service":
            selector = dict(document["spec"]["selector"])
            leads = selector.pop(LABEL_LEADER, None)  # set on the pod by whoever leads
            assert leads == (LEADER if document["metadata"]["name"] == "clusterd-grpc-svc" else None)
            assert selector.items() <= template["metadata"]["labels"].items()
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports


def test_the_shipped_configuration_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "mindie-ha.yaml"
    path.write_text(named("ConfigMap", "mindie-ha-config")["data"]["mindie-ha.yaml"], encoding="utf-8")
    assert load_settings(path) == load_settings()


def test_the_pod_runs_without_root_and_without_a_writable_root() -> None:
    spec = named("Deployment", "mindie-ha")["spec"]["template"]["spec"]
    container = spec["containers"][0]["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["readOnlyRootFilesystem"] is True
    assert container["allowPrivilegeEscalation"] is False


def test_a_drain_leaves_one_of_two_replicas_that_know_their_own_pods() -> None:
    deployment, budget = named("Deployment", "mindie-ha")["spec"], named("PodDisruptionBudget", "mindie-ha")
    assert deployment["replicas"] == 2
    assert budget["spec"]["minAvailable"] == 1
    assert budget["spec"]["selector"] == deployment["selector"]
    (container,) = deployment["template"]["spec"]["containers"]
    given = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    found = own_pod({name: f"value of {path}" for name, path in given.items()})
    assert found == OwnPod(
        ObjectKey("value of metadata.namespace", "value of metadata.name"), "value of metadata.uid"
    )


def granted() -> set[tuple[str, str, str, str]]:
    """Namespace (empty: everywhere), group, resource, verb."""
    roles = [("", named("ClusterRole", "mindie-ha")), ("mindx-dl", named("Role", "mindie-ha"))]
    return {
        (namespace, group, resource, verb)
        for namespace, role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def explained() -> dict[tuple[str, str], set[str]]:
    """What happens without a verb on a resource, as the rows of the page say it."""
    page = (FOLDER.parent / "docs" / "permissions.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], set[str]] = {}
    for cells in (line.split("|") for line in page.splitlines() if line.count("|") >= 5):
        for resource in cells[1].split(","):
            for verb in cells[2].split(","):
                found.setdefault((resource.strip(), verb.strip()), set()).add(cells[4].strip())
    return found


def test_every_permission_is_explained() -> None:
    for _, _, resource, verb in granted():
        assert (resource, verb) in explained(), f"{verb} {resource} is granted and not explained"


def test_the_controller_knows_exactly_the_permissions_that_are_granted() -> None:
    known = {
        (each.namespace, each.resource.group, each.resource.plural, each.verb)
        for each in needed(load_settings(None), labels_itself=True)
    }
    assert known == granted()


def test_what_the_controller_says_of_a_missing_permission_is_what_the_page_says() -> None:
    settings = load_settings(None, flags={"roles": {"label_pods": True}})
    for each in needed(settings, labels_itself=True):
        assert each.without in explained()[each.resource.plural, each.verb], str(each)
