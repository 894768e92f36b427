"""What will happen to a job when something fails: ladder, environment, every time, and what to look for where
lint cannot see.

It asks the very tables by which the controller acts (ownership, ladders, settings), so that it cannot say
something else. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mindie_ha.intake.jobs.descriptions import JobDescription, JobKind, Task
from mindie_ha.intake.jobs.environments import environment
from mindie_ha.intake.jobs.timeouts import Timeout, op_retry, timeouts
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.settings import Owner, Settings
from mindie_ha.model.workloads import LABEL_JOB_ID, PodGroup, Role, Workload
from mindie_ha.policy import blocks
from mindie_ha.policy.ladders import ladder
from mindie_ha.policy.ownership import ANNOTATION_STRATEGY, STRATEGY_OURS, Ownership, claim
from mindie_ha.policy.parameters.catalogue import needed
from mindie_ha.policy.parameters.modes import STRATEGIES, TITLES, Mode
from mindie_ha.policy.parameters.rows import Place
from mindie_ha.policy.rungs.steps import Rung

RUNGS = {
    "pod": "only the pods that are hit; the others stay",
    "rack": "the {size} pods of a rack block around each of them",
    "super-pod": "the {size} pods of a logical super-pod around each of them",
    "level-1": "the {size} pods of a block of level 1 around each of them",
    "level-2": "the {size} pods of a block of level 2 around each of them",
    "level-3": "the {size} pods of a block of level 3 around each of them",
    "job": "all pods of this job, of no other",
}
CHIP_BLOCKS = {"rack": blocks.RA_BLOCK, "super-pod": blocks.SP_BLOCK}
OWNERSHIP = {
    Ownership.ADOPTED: "mindie-ha deletes its pods; Volcano is told not to",
    Ownership.GUARD: "Volcano deletes its pods first, mindie-ha where it does not",
    Ownership.OURS_EXTERNAL: "mindie-ha deletes its pods; Volcano only marks them",
    Ownership.OBSERVE: "nobody deletes its pods; it is shown, and its table is published",
    Ownership.PLATFORM: "a platform deletes its pods; mindie-ha does not",
}
UNSEEN = frozenset({Place.SCRIPT, Place.TRAINING, Place.MODEL, Place.PROGRAM, Place.IMAGE})


@dataclass(frozen=True, slots=True)
class Step:
    """One rung."""

    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Injected:
    """The environment of the pods of one task; what differs from pod to pod stands as `first … last`."""

    task: str
    pods: int
    variables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one job."""

    title: str
    role: str
    framework: str
    pods: int
    cards: int
    who: str
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    strategies: tuple[str, ...]
    environment: tuple[Injected, ...]
    timeouts: tuple[Timeout, ...]
    unseen: tuple[str, ...]


def explain(job: JobDescription, *, settings: Settings) -> Explanation:
    """The explanation of `job`."""
    workload = workload_of(job)
    standing = claim(workload, _adopted(workload), settings=settings)
    acts = standing.acts and job.rescheduled
    rungs = ladder(workload, settings=settings) if acts else ()
    steps = [step for rung in rungs if (step := _step(job, rung)) is not None]
    asked = tuple(mode for mode in STRATEGIES if mode in job.strategies)
    notes = [standing.notice.message] if standing.notice is not None else []
    return Explanation(
        title=f"{job.kind.value if job.kind is not JobKind.VC_JOB else 'vcjob'} {workload.key}",
        role=job.role,
        framework=str(job.framework or ""),
        pods=job.replicas,
        cards=job.cards,
        who=OWNERSHIP[standing.ownership],
        notes=(*notes, *_notes(job, settings, [step.name for step in steps])),
        steps=(*steps, *([Step("park", "stop, and wait for a person")] if steps else [])),
        strategies=tuple(f"{mode.value}: {TITLES[mode]}" for mode in asked),
        environment=tuple(_injected(job, task) for task in job.tasks if environment(job, task)),
        timeouts=timeouts(job, settings=settings),
        unseen=tuple(_unseen(job)),
    )


def workload_of(job: JobDescription) -> Workload:
    """The workload that the controller will see, as far as a file can tell."""
    return Workload(
        key=ObjectKey(job.namespace or "default", job.name or "nameless"),
        uid="",
        kind=job.kind.value,
        role=job.role,
        pd_role=PdRole.UNKNOWN,
        job_id=job.labels.get(LABEL_JOB_ID, ""),
        replicas=job.replicas,
        restart_policy=job.tasks[0].restart_policy if job.tasks else "Never",
        labels=job.labels,
        annotations=job.annotations,
    )


def _step(job: JobDescription, rung: Rung) -> Step | None:
    """A rung in words; None for blocks that the job does not have."""
    words = RUNGS.get(rung.name, (type(rung).__doc__ or "").strip().partition("\n")[0].rstrip("."))
    if "{size}" not in words:
        return Step(rung.name, words)
    per_pod = max((task.cards for task in job.tasks), default=0)
    if rung.name in CHIP_BLOCKS:
        size = blocks.pods_of_chips(job.annotations, CHIP_BLOCKS[rung.name], per_pod=per_pod)
    else:
        size = blocks.pods_per_level(job.annotations, int(rung.name.removeprefix("level-")))
    return Step(rung.name, words.format(size=size)) if 0 < size < job.replicas else None


def _adopted(workload: Workload) -> PodGroup:
    """The PodGroup as it will be once we have adopted the job; another's annotation stays."""
    told = workload.annotations.get(ANNOTATION_STRATEGY, STRATEGY_OURS)
    return PodGroup(workload.podgroup, "", "", annotations={ANNOTATION_STRATEGY: told})


def _notes(job: JobDescription, settings: Settings, rungs: list[str]) -> Iterator[str]:
    retries = job.labels.get("fault-retry-times")
    if rungs and job.role in (Role.TRAINING, Role.SERVER):
        times = "none is" if retries in (None, "0") else f"{retries} are"
        yield f"software failures: {times} answered; faults of hardware pay nothing"
    if rungs:
        yield f"parks after {settings.budgets.max_attempts} attempts without a stable stretch"
    if rungs and job.strategies and not set(rungs) - set(RUNGS):
        yield "its process-level strategies are not served by this version: the ladder below is what happens"
    if settings.ownership.owner is Owner.VOLCANO and rungs:
        yield "owner: volcano is set, so mindie-ha acts only where Volcano does not"
    if job.is_training and job.pod_level and rungs and "pod" not in rungs:
        yield "its pod level is not served by this version: the ladder below is what happens"
    if job.uses_taskd and rungs and job.leader is not None:
        yield f"a fault of the leader ({job.leader.kind} 0) is answered at the job level"
    if job.is_training and job.cards and op_retry(job) is None:
        yield "operator-level retry is off or not to be seen: a link fault is not waited for"


def _injected(job: JobDescription, task: Task) -> Injected:
    first, last = environment(job, task, 0), environment(job, task, max(task.replicas - 1, 0))
    pairs = [
        (name, value if last[name] == value else f"{value} … {last[name]}") for name, value in first.items()
    ]
    return Injected(task.kind, task.replicas, tuple(pairs))


def _unseen(job: JobDescription) -> Iterator[str]:
    """What the modes of a job need in scripts and images, which no YAML shows."""
    if not job.is_training:
        return
    told: dict[str, str] = {}
    for mode in job.modes:
        for one in needed(mode):
            fits = not one.frameworks or job.framework in one.frameworks
            if one.place in UNSEEN and fits and mode is not Mode.JOB:
                told.setdefault(one.name, f"{one.name} ({one.place.value}): {one.meaning}")
    yield from told.values()
