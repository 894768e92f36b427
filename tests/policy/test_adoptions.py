"""Which labels a wish takes, what is refused, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.errors import Conflict, InputError, MindieHaError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Maker, PodGroup, Role, Workload
from mindie_ha.policy.adoptions import explained, labels

VOLCANO = Settings.model_validate({"ownership": {"owner": "volcano"}})
POD = "pod-rescheduling"


def job(
    label: str | None = None, *, role: Role = Role.COORDINATOR, replicas: int = 2, **more: str
) -> Workload:
    found = {name.replace("_", "-"): value for name, value in more.items()}
    return Workload(
        key=ObjectKey("ns", "job"),
        uid="u",
        kind="AscendJob",
        role=role,
        pd_role=PdRole.UNKNOWN,
        job_id="svc",
        replicas=replicas,
        labels=found if label is None else {"fault-scheduling": label, **found},
    )


def group(value: str | None = None) -> PodGroup:
    notes = {} if value is None else {"ProcessRecoverStrategy": value}
    return PodGroup(ObjectKey("ns", "job-u"), "pg", "Running", notes)


@pytest.mark.parametrize(
    ("workload", "mode", "pods", "wanted"),
    [
        pytest.param(job(), "", False, {"fault-scheduling": "force"}, id="absent"),
        pytest.param(job("off"), "", False, {"fault-scheduling": "force"}, id="off"),
        pytest.param(job("true"), "", False, {"fault-scheduling": "force"}, id="look-alike"),
        pytest.param(job("grace"), "", False, {}, id="stays-grace"),
        pytest.param(job("external-force"), "", False, {}, id="stays-external"),
        pytest.param(job("grace"), "force", False, {"fault-scheduling": "force"}, id="changed"),
        pytest.param(job("force"), "force", False, {}, id="twice"),
        pytest.param(job("force"), "", True, {POD: "on"}, id="pods"),
        pytest.param(job("force", pod_rescheduling="On"), "", True, {POD: "on"}, id="pods-look-alike"),
        pytest.param(job("force", pod_rescheduling="on"), "", True, {}, id="pods-twice"),
        pytest.param(
            job(role=Role.TRAINING), "grace", True, {"fault-scheduling": "grace", POD: "on"}, id="training"
        ),
    ],
)
def test_only_labels_that_differ_are_set(
    workload: Workload, mode: str, pods: bool, wanted: dict[str, str]
) -> None:
    found = labels(workload, group(), mode=mode, pod_rescheduling=pods, settings=Settings())
    assert found == wanted
    after = replace(workload, labels={**workload.labels, **found})
    assert labels(after, group(), mode=mode, pod_rescheduling=pods, settings=Settings()) == {}


@pytest.mark.parametrize(
    ("workload", "podgroup", "asked", "error", "words"),
    [
        pytest.param(job(), group("x"), ("", False), Conflict, "a platform owns this job", id="platform"),
        pytest.param(
            replace(job(), annotations={"ProcessRecoverStrategy": "x"}),
            None,
            ("", False),
            Conflict,
            "Remove the annotation",
            id="platform-on-the-job",
        ),
        pytest.param(replace(job(), deleting=True), group(), ("", False), Conflict, "deleted", id="deleting"),
        pytest.param(job(), group(), ("hard", False), InputError, "no mode", id="mode"),
        pytest.param(job(role=Role.SERVER), group(), ("", True), InputError, "as a whole", id="server"),
    ],
)
def test_what_labels_cannot_do_is_refused_in_one_sentence(
    workload: Workload,
    podgroup: PodGroup | None,
    asked: tuple[str, bool],
    error: type[MindieHaError],
    words: str,
) -> None:
    with pytest.raises(error, match=words) as refused:
        labels(workload, podgroup, mode=asked[0], pod_rescheduling=asked[1], settings=Settings())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("podgroup", "settings", "words"),
    [
        pytest.param(group("mindie-ha"), Settings(), "carries our annotation", id="adopted"),
        pytest.param(group(), Settings(), "adopted with the next look", id="not-yet"),
        pytest.param(None, Settings(), "as soon as there is one", id="no-podgroup"),
        pytest.param(group(), VOLCANO, "ownership.owner is volcano", id="volcano"),
    ],
)
def test_what_is_said_is_what_holds(podgroup: PodGroup | None, settings: Settings, words: str) -> None:
    said = explained(job("off"), podgroup, changed={"fault-scheduling": "force"}, settings=settings)
    assert said[0] == "label fault-scheduling is now 'force' (was 'off')"
    assert words in said[1]


def test_pods_that_have_no_peer_and_jobs_that_are_failed_are_told() -> None:
    alone = replace(job("force", replicas=1), failed=True)
    said = explained(alone, group("mindie-ha"), changed={POD: "on"}, settings=Settings())
    assert "no peer" in said[2]
    assert "Failed for good" in said[3]


def test_an_instance_is_labelled_where_it_is_made() -> None:
    made = replace(
        job(role=Role.SERVER), maker=Maker("mindcluster.huawei.com/v1", "InstanceSet", "a-0-d", "i")
    )
    with pytest.raises(Conflict, match="made by InstanceSet a-0-d, which undoes it"):
        labels(made, None, mode="", pod_rescheduling=False, settings=Settings())
