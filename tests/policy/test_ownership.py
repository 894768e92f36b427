"""Who may delete: labels, adoption, guard, platforms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindie_ha.model.decisions import AdoptPodGroup
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import PodGroup, Role, Workload
from mindie_ha.policy.ownership import Mode, Ownership, claim
from tests.policy.worlds import service

OURS = {"ProcessRecoverStrategy": "mindie-ha"}
VOLCANO = Settings.model_validate({"ownership": {"owner": "volcano"}})


def job(label: str | None, *, kind: str = "AscendJob", annotations: dict[str, str] | None = None) -> Workload:
    return Workload(
        key=ObjectKey("ns", "job"),
        uid="u",
        kind=kind,
        role=Role.SERVER,
        pd_role=PdRole.UNKNOWN,
        job_id="svc",
        replicas=1,
        labels={} if label is None else {"fault-scheduling": label},
        annotations=annotations or {},
    )


def group(annotations: dict[str, str] | None = None) -> PodGroup:
    return PodGroup(ObjectKey("ns", "job-u"), "pg", "Running", annotations or {})


@pytest.mark.parametrize(
    ("workload", "podgroup", "settings", "ownership", "adopt"),
    [
        pytest.param(job("force"), group(OURS), Settings(), Ownership.ADOPTED, False, id="adopted"),
        pytest.param(job("grace"), group(OURS), Settings(), Ownership.ADOPTED, False, id="adopted-grace"),
        pytest.param(job("force"), group(), Settings(), Ownership.GUARD, True, id="not-seen-yet"),
        pytest.param(job("force"), None, Settings(), Ownership.GUARD, False, id="no-podgroup"),
        pytest.param(job("force"), group(OURS), VOLCANO, Ownership.GUARD, False, id="volcano-owns"),
        pytest.param(
            job("force"),
            group({"ProcessRecoverStrategy": ""}),
            Settings(),
            Ownership.PLATFORM,
            False,
            id="G8-any-value",
        ),
        pytest.param(
            job("force", annotations={"ProcessRecoverStrategy": "x"}),
            group(),
            Settings(),
            Ownership.PLATFORM,
            False,
            id="platform-on-the-job",
        ),
        pytest.param(
            job("external-force"), group(), Settings(), Ownership.OURS_EXTERNAL, False, id="G12-external"
        ),
        pytest.param(
            job("external-grace", kind="StatefulSet"),
            None,
            Settings(),
            Ownership.GUARD,
            False,
            id="infer-operator",
        ),
        pytest.param(job("off"), group(), Settings(), Ownership.OBSERVE, False, id="G10-off"),
        pytest.param(job(None), group(), Settings(), Ownership.OBSERVE, False, id="absent"),
    ],
)
def test_labels_and_annotation_decide(
    workload: Workload, podgroup: PodGroup | None, settings: Settings, ownership: Ownership, adopt: bool
) -> None:
    found = claim(workload, podgroup, settings=settings)
    assert (found.ownership, found.adopt) == (ownership, adopt)
    assert found.mode is (
        Mode.GRACE if "grace" in workload.labels.get("fault-scheduling", "") else Mode.FORCE
    )


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        pytest.param("true", "unquoted", id="131-unquoted-on"),
        pytest.param("on", "unquoted", id="on"),
        pytest.param("Grace", "must be one of", id="135-capital"),
        pytest.param("", "must be one of", id="135-empty"),
        pytest.param("foo", "must be one of", id="G11"),
    ],
)
def test_a_value_that_is_no_mode_is_said_and_not_guessed(value: str, hint: str) -> None:
    found = claim(job(value), group(), settings=Settings())
    assert found.ownership is Ownership.OBSERVE
    assert found.notice is not None
    assert hint in found.notice.message


def test_nothing_is_deleted_before_adoption_is_seen_or_the_guard_time_is_over() -> None:
    world = service()
    job_ = world.job("p0")
    job_.podgroup = replace(job_.podgroup, uid="pg-reborn", annotations={})
    world.break_card(world.pods_of("p0")[0])
    first = world.look(cut=True)
    assert any(isinstance(action, AdoptPodGroup) for item in first.decisions for action in item.actions)
    world.settle(for_s=14.0)
    assert world.deleted == []
    assert job_.ledger.recovery is not None
    assert job_.ledger.recovery.condition == "GuardingOwner"
    world.settle(for_s=3.0)
    assert len(world.deleted) == 2


def test_a_lost_adoption_is_ordered_again_but_not_all_the_time() -> None:
    world = service()
    job_ = world.job("p0")
    job_.podgroup = replace(job_.podgroup, uid="pg-reborn", annotations={})
    orders = 0
    for _ in range(70):
        result = world.look(cut=True)
        orders += sum(
            isinstance(action, AdoptPodGroup) for item in result.decisions for action in item.actions
        )
        world.now_s += 1.0
    assert orders == 3


def test_guard_leaves_the_first_word_to_the_scheduler() -> None:
    world = service(settings=VOLCANO)
    world.break_card(world.pods_of("p0")[0])
    old = {pod.uid for pod in world.pods_of("p0")}
    world.settle(for_s=5.0)
    for uid in old:
        del world.pods[uid]
    world.settle(until=lambda: world.closed("p0"))
    assert world.deleted == []
    assert old.isdisjoint(pod.uid for pod in world.pods_of("p0"))


@pytest.mark.parametrize("label", ["off", "true"])
def test_what_is_not_ours_is_published_and_never_touched(label: str) -> None:
    world = service()
    before = world.job("p0").ledger
    job_ = world.job("p0")
    job_.workload = replace(job_.workload, labels={"fault-scheduling": label})
    world.break_card(world.pods_of("p0")[0])
    world.settle(for_s=20.0)
    assert world.deleted == []
    assert world.job("p0").ledger == before
    assert len(world.groups()) == 4
