"""`explain` shows, variable by variable, what the embedded operator injects."""

from __future__ import annotations

import pytest

from mindie_ha.intake.jobs.descriptions import JobDescription
from mindie_ha.intake.jobs.environments import OWN_ADDRESS, SERVER, environment
from mindie_ha.intake.lints.jobs.manifests import describe
from mindie_ha.sim.actors.ascendjobs import JobSpec, read_job
from mindie_ha.sim.actors.job_envs import Addresses, injected
from tests.intake.job_patches import Patch, all_of, label, note, patched, put

PODS = "spec replicaSpecs"
IN_CLUSTER = {"127.0.0.1": SERVER, "10.0.0.9": "<address of Service"}


def both(base: str, patch: Patch) -> tuple[JobDescription, JobSpec]:
    subject = patched(base, patch, kind="AscendJob")
    described = describe(subject)
    assert described is not None
    body = {**subject.body}
    body["metadata"] = {**subject.body["metadata"], "uid": "uid-1"}  # type: ignore[dict-item]
    return described, read_job(body)


def nothing(body: object) -> None:
    """The base as it is."""


@pytest.mark.parametrize(
    ("base", "patch"),
    [
        pytest.param("pytorch_process", nothing, id="pytorch"),
        pytest.param("pytorch_process", note("sp-block", "16"), id="sp-block"),
        pytest.param("pytorch_process", note("recover-strategy", "exit,elastic-training"), id="strategies"),
        pytest.param("pytorch_process", label("subHealthyStrategy", "hotSwitch"), id="hot-switch"),
        pytest.param("pytorch_pod", put(f"{PODS} Worker template spec hostNetwork", True), id="host-network"),
        pytest.param("mindspore_process", nothing, id="mindspore"),
        pytest.param(
            "mindspore_process",
            put(f"{PODS} Scheduler template spec containers 0 resources", None),
            id="scheduler-without-cards",
        ),
        pytest.param("mindspore_process", put(f"{PODS} Scheduler", None), id="mindspore-workers-only"),
        pytest.param("mindspore_process", label("pod-rescheduling", "on"), id="mindspore-pod-level"),
        pytest.param("tensorflow_job", nothing, id="tensorflow"),
        pytest.param("mindie_server", nothing, id="server"),
        pytest.param("mindie_coordinator", nothing, id="coordinator"),
        pytest.param(
            "mindie_server", all_of(label("jobID", None), note("sp-block", "x")), id="role-without-service"
        ),
    ],
)
def test_every_variable_of_every_pod(base: str, patch: Patch) -> None:
    described, spec = both(base, patch)
    addresses = Addresses(server="127.0.0.1", leader="10.0.0.9")
    for role in spec.roles:
        (task,) = (one for one in described.tasks if one.kind == role.kind)
        for index in range(role.replicas):
            entries = injected(spec, role, index, addresses)
            shown = environment(described, task, index)
            assert set(shown) == {entry["name"] for entry in entries}
            for entry in entries:
                told = shown[entry["name"]]
                if "valueFrom" in entry:
                    path = entry["valueFrom"]["fieldRef"]["fieldPath"]
                    assert told == (
                        OWN_ADDRESS if path == "status.podIP" else f"<annotation {path[22:-2]} of the pod>"
                    )
                elif entry["name"] == "MINDX_TASK_ID" and entry["value"] == "uid-1":
                    assert told == "<UID of the job>"
                else:
                    assert told.startswith(IN_CLUSTER.get(entry["value"], entry["value"]))
                    assert told.startswith("<") or told == entry["value"]
