"""What `explain` says of a job follows from the tables by which the controller acts."""

from __future__ import annotations

import pytest

from mindie_ha.intake.jobs.descriptions import JobKind
from mindie_ha.intake.jobs.explaining import RUNGS, Explanation, explain, workload_of
from mindie_ha.intake.lints.jobs.manifests import describe
from mindie_ha.model.settings import OwnershipSettings, PhaseSettings, Settings
from mindie_ha.policy.ladders import ladder
from tests.intake.job_patches import Patch, label, note, patched, put
from tests.intake.job_variants import BASES, COORDINATOR, ELASTIC, POD, PROCESS, SERVER, TENSORFLOW, VARIANTS


def told(
    base: str, patch: Patch, *, kind: str = "AscendJob", settings: Settings | None = None
) -> Explanation:
    job = describe(patched(base, patch, kind=kind))
    assert job is not None
    return explain(job, settings=settings or Settings())


def nothing(body: object) -> None:
    """The base as it is."""


def seconds(one: Explanation, name: str) -> list[float]:
    return [timeout.seconds for timeout in one.timeouts if timeout.name == name]


@pytest.mark.parametrize(
    ("base", "kind"), [pair for pair in BASES if pair[1] in ("AscendJob", "Job")], ids=str
)
def test_the_ladder_is_the_controllers(base: str, kind: str) -> None:
    job = describe(patched(base, nothing, kind=kind))
    assert job is not None
    rungs = [rung.name for rung in ladder(workload_of(job), settings=Settings())]
    rungs = [name for name in rungs if "{size}" not in RUNGS[name]]  # none of these has blocks
    assert [step.name for step in explain(job, settings=Settings()).steps] == [*rungs, "park"]


def test_active_and_standby_have_the_pod_rung_first() -> None:
    assert [step.name for step in told(COORDINATOR, nothing).steps] == ["pod", "job", "park"]


@pytest.mark.parametrize(
    ("patch", "who"),
    [
        (nothing, "mindie-ha deletes"),
        (label("fault-scheduling", "external-force"), "Volcano only marks"),
        (label("fault-scheduling", "off"), "nobody deletes"),
        (label("fault-scheduling", "true"), "nobody deletes"),
        (note("ProcessRecoverStrategy", "platform"), "a platform deletes"),
    ],
    ids=["force", "external", "off", "unknown", "platform"],
)
def test_who_acts(patch: Patch, who: str) -> None:
    one = told(SERVER, patch)
    assert who in one.who
    assert bool(one.steps) == (who in ("mindie-ha deletes", "Volcano only marks"))


def test_owner_volcano_is_said() -> None:
    one = told(
        SERVER, nothing, settings=Settings(ownership=OwnershipSettings.model_validate({"owner": "volcano"}))
    )
    assert "Volcano deletes its pods first" in one.who


def test_times_come_from_settings_and_job() -> None:
    settings = Settings(phases=PhaseSettings(stop_grace_s=120))
    process = told(PROCESS, nothing, settings=settings)
    assert seconds(process, "stop_grace_s") == [120]
    assert seconds(process, "termination_grace_s") == [600, 600]
    assert seconds(process, "op_retry_s") == [8]
    assert seconds(process, "wait_reschedule_s") == [270]
    assert seconds(process, "mindio_wait_s") == [30]
    elastic = told(ELASTIC, note("wait-reschedule-timeout", "60"))
    assert (seconds(elastic, "wait_reschedule_s"), seconds(elastic, "mindio_wait_s")) == ([60], [60])
    assert seconds(told(ELASTIC, note("wait-reschedule-timeout", "5")), "wait_reschedule_s") == [270]
    server = told(SERVER, note("huawei.com/schedule.filter.faultCode", "80E01801:30"))
    assert seconds(server, "silence_s") == [30, 60]
    assert told(SERVER, label("fault-scheduling", "off")).timeouts == ()


def test_op_retry_is_read_from_the_annotation_where_the_container_is_silent() -> None:
    bare = told(POD, put("metadata annotations", {"mindie-ha.io/hccl-op-retry": "MaxCnt:1,HoldTime:2000"}))
    assert seconds(bare, "op_retry_s") == [3]
    off = told(PROCESS, put("metadata annotations mindie-ha.io/hccl-op-retry", "off"))
    assert seconds(off, "op_retry_s") == [8]  # the container beats the annotation


def test_what_yaml_does_not_show_is_named_for_the_framework_at_hand() -> None:
    names = " ".join(told(PROCESS, nothing).unseen)
    assert "--max_restarts" in names
    assert "hccl_watchdog" not in names
    assert told(TENSORFLOW, nothing).unseen == ()


def test_pods_of_one_task_differ_only_in_a_range() -> None:
    worker = told(PROCESS, nothing).environment[1]
    assert dict(worker.variables)["RANK"] == "1 … 3"


def test_no_broken_manifest_breaks_it() -> None:
    for variant in VARIANTS:
        job = describe(variant.broken())
        if job is not None and job.kind is not JobKind.POD_SET:
            explain(job, settings=Settings())


def test_blocks_are_told_where_there_are_some() -> None:
    blocks = told(POD, put("metadata annotations", {"ra-block": "16", "sp-block": "16"}))
    assert [step.name for step in blocks.steps] == ["pod", "rack", "super-pod", "job", "park"]
    assert blocks.steps[1].what == "the 2 pods of a rack block around each of them"
    assert seconds(blocks, "place_pod_to_rack_s") == [3]
    assert [step.name for step in told(POD, nothing).steps] == ["pod", "job", "park"]
    levels = told(POD, put("metadata annotations", {"huawei.com/affinity-config": "level1=2,level2=4"}))
    assert [step.name for step in levels.steps] == [
        "pod",
        "level-1",
        "job",
        "park",
    ]  # level 2 is the whole job
