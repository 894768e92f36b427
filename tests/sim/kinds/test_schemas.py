"""What is refused, and with which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindie_ha.sim import schemas
from mindie_ha.sim.resources import RESOURCES, Resource, by_kind

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [
            {
                "name": "ascend",
                "image": "mindie:1",
                "resources": {
                    "limits": {"huawei.com/Ascend910": 8, "memory": "4Gi"},
                    "requests": {"huawei.com/Ascend910": "8", "cpu": "1500m"},
                },
                "ports": [{"containerPort": 8080}],
                "readinessProbe": {
                    "httpGet": {"path": "/v2/health/ready", "port": "http"},
                    "periodSeconds": 5,
                },
                "volumeMounts": [{"name": "dshm", "mountPath": "/data"}],
            }
        ],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}],
        "tolerations": [{"operator": "Exists"}],
    },
}
JOB: dict[str, Any] = {
    "apiVersion": "mindxdl.gitee.com/v1",
    "kind": "AscendJob",
    "metadata": {"name": "j", "labels": {"framework": "pytorch"}},
    "spec": {
        "runPolicy": {"schedulingPolicy": {"minAvailable": 1, "queue": "default"}},
        "replicaSpecs": {
            "Master": {
                "replicas": 1,
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": copy.deepcopy(POD["spec"])},
            }
        },
    },
}


def changed(obj: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a path (steps apart by spaces) set, or removed where it is None."""
    result = copy.deepcopy(obj)
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split()]
    node: Any = result
    for step in steps:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return result


def refusals(kind: str, obj: dict[str, Any]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in schemas.validate(by_kind(kind), obj)]


def test_good_objects_are_accepted() -> None:
    assert refusals("Pod", POD) == []
    assert refusals("AscendJob", JOB) == []


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            "metadata labels",
            {"grt-group/deploy-server": 1},
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "spec containers 0 image",
            5,
            "number into Go struct field Container.spec.containers.image of type string",
        ),
        ("spec containers", {}, "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ("spec hostNetwork", "yes", "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        (
            "spec nodeSelector",
            [],
            "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            "spec containers 0 ports 0 containerPort",
            "x",
            "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            "spec terminationGracePeriodSeconds",
            1.5,
            "number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        ("spec", [], "array into Go struct field Pod.spec of type v1.PodSpec"),
    ],
)
def test_wrong_json_types_of_a_built_in_kind_fail_in_the_decoder(path: str, value: Any, problem: str) -> None:
    message = f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {problem}'
    assert schemas.decode_error(by_kind("Pod"), changed(POD, path, value)) == message


def test_wrong_quantity_fails_in_the_decoder() -> None:
    pod = changed(POD, "spec containers 0 resources limits memory", "4 GB")
    assert "quantities must match" in (schemas.decode_error(by_kind("Pod"), pod) or "")


def test_metadata_of_a_custom_kind_is_decoded_on_its_own() -> None:
    job = changed(JOB, "metadata labels x", 1)
    assert schemas.decode_error(by_kind("AscendJob"), job) == (
        'AscendJob in version "v1" cannot be handled as a AscendJob: json: cannot unmarshal number into Go '
        "struct field ObjectMeta.labels of type string"
    )


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("spec containers", [], "spec.containers: Required value"),
        ("spec containers 0 image", None, "spec.containers[0].image: Required value"),
        ("spec volumes 0 name", "other", 'spec.containers[0].volumeMounts[0].name: Not found: "dshm"'),
        (
            "spec restartPolicy",
            "Sometimes",
            'spec.restartPolicy: Unsupported value: "Sometimes": '
            'supported values: "Always", "Never", "OnFailure"',
        ),
        (
            "spec containers 0 resources requests huawei.com/Ascend910",
            4,
            'spec.containers[0].resources.requests: Invalid value: "4": '
            "must be equal to huawei.com/Ascend910 limit of 8",
        ),
        (
            "spec containers 0 resources requests memory",
            "8Gi",
            'spec.containers[0].resources.requests: Invalid value: "8Gi": '
            "must be less than or equal to memory limit of 4Gi",
        ),
        (
            "spec containers 0 readinessProbe exec",
            {"command": ["x"]},
            "spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
        ),
        (
            "spec volumes 0 hostPath",
            {"path": "/"},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
    ],
)
def test_pod_rules(path: str, value: Any, problem: str) -> None:
    assert problem in refusals("Pod", changed(POD, path, value))


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            "spec runPolicy schedulingPolicy minAvailable",
            "x",
            'spec.runPolicy.schedulingPolicy.minAvailable: Invalid value: "string": '
            'spec.runPolicy.schedulingPolicy.minAvailable in body must be of type integer: "string"',
        ),
        ("spec replicaSpecs", None, "spec.replicaSpecs: Required value"),
        (
            "spec replicaSpecs Master template spec containers 0 name",
            None,
            "spec.replicaSpecs.Master.template.spec.containers[0].name: Required value",
        ),
        (
            "spec replicaSpecs Master template spec hostNetwork",
            "true",
            'spec.replicaSpecs.Master.template.spec.hostNetwork: Invalid value: "string": '
            'spec.replicaSpecs.Master.template.spec.hostNetwork in body must be of type boolean: "string"',
        ),
    ],
)
def test_structural_schema_of_the_ascend_job(path: str, value: Any, problem: str) -> None:
    assert refusals("AscendJob", changed(JOB, path, value)) == [problem]


def test_labels_of_a_job_template_are_not_checked() -> None:
    job = changed(JOB, "spec replicaSpecs Master template metadata labels x", 1)
    assert refusals("AscendJob", job) == []


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        ("ConfigMap", {"data": {"no/slash": "x"}}, "data[no/slash]"),
        ("Node", {"spec": {"taints": [{"key": "a", "effect": "Never"}]}}, "metadata.taints[0].effect"),
        ("Service", {"spec": {}}, "spec.ports"),
        ("Lease", {"spec": {"leaseDurationSeconds": 0}}, "spec.leaseDurationSeconds"),
        ("PriorityClass", {"value": 2_000_000_000}, "value"),
        ("Deployment", {"spec": {"template": {"spec": POD["spec"]}}}, "spec.selector"),
    ],
)
def test_rules_of_other_kinds(kind: str, body: dict[str, Any], field: str) -> None:
    causes = schemas.validate(by_kind(kind), {"metadata": {"name": "x"}, **body})
    assert field in [cause.field for cause in causes]


def test_unknown_fields_are_named_and_pruned() -> None:
    job = changed(JOB, "spec runPolicy surprise", {"a": 1})
    resource = by_kind("AscendJob")
    assert schemas.unknown_fields(resource, job) == ("spec.runPolicy.surprise",)
    assert schemas.canonical(resource, job) == JOB
    assert schemas.canonical(resource, JOB) is JOB


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (8, "8"), ("8", "8"), ("1000m", "1"), (1.5, "1500m"), ("0.5", "500m"), ("1024Mi", "1Gi"),
        ("1000Gi", "1000Gi"), ("0.5Gi", "512Mi"), (2000, "2k"), ("0", "0"), ("1e3", "1e3"), ("100n", "100n"),
    ],
)  # fmt: skip
def test_quantities_of_built_in_kinds_are_stored_canonically(written: Any, stored: str) -> None:
    pod = changed(POD, "spec containers 0 resources limits memory", written)
    kept = schemas.canonical(by_kind("Pod"), pod)
    assert kept["spec"]["containers"][0]["resources"]["limits"]["memory"] == stored


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.group}/{resource.kind}")
def test_every_kind_has_a_schema(resource: Resource) -> None:
    assert schemas.decode_error(resource, {"metadata": {"name": "x"}}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLACES = ["spec", "spec containers", "spec containers 0", "spec volumes 0", "spec containers 0 resources",
          "spec containers 0 readinessProbe", "spec tolerations 0", "metadata"]  # fmt: skip


@given(value=JSON, place=st.sampled_from(PLACES))
def test_hostile_pods_are_refused_or_accepted_but_never_crash(value: Any, place: str) -> None:
    resource = by_kind("Pod")
    pod = changed(POD, place, value) if value is not None else POD
    if schemas.decode_error(resource, pod) is None:
        assert all(cause.message for cause in schemas.validate(resource, schemas.canonical(resource, pod)))


@given(value=JSON)
def test_hostile_jobs_are_refused_or_accepted_but_never_crash(value: Any) -> None:
    resource = by_kind("AscendJob")
    job = schemas.canonical(resource, {**JOB, "spec": value, "status": value})
    assert all(cause.message for cause in schemas.validate(resource, job))
