"""Every time that counts while a job is recovered: ours from the settings, its own from its YAML.

A row says where the number comes from and to whom it applies; the words are those of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mindie_ha.intake import silences
from mindie_ha.intake.jobs.descriptions import JobDescription
from mindie_ha.intake.jobs.links import OpRetry, op_retry_of
from mindie_ha.model.settings import Settings
from mindie_ha.model.workloads import Role
from mindie_ha.policy import blocks
from mindie_ha.policy.parameters.catalogue import parameter
from mindie_ha.policy.parameters.modes import MIGRATING
from mindie_ha.policy.parameters.rows import Parameter

Applies = Callable[[JobDescription], bool]


@dataclass(frozen=True, slots=True)
class Timeout:
    """One time. `source` is a setting, or a place in the job."""

    name: str
    seconds: float
    source: str
    meaning: str


def always(job: JobDescription) -> bool:
    """Applies to every job."""
    del job
    return True


def forced(job: JobDescription) -> bool:
    """Pods are deleted with grace 0."""
    return job.scheduling.endswith("force")


def graceful(job: JobDescription) -> bool:
    """Pods get their time."""
    return job.scheduling.endswith("grace")


def narrow(job: JobDescription) -> bool:
    """There is a rung before the last."""
    return job.pod_level and job.role is not Role.SERVER


def serving(job: JobDescription) -> bool:
    """Part of a MindIE service."""
    return job.role is not Role.TRAINING


def server(job: JobDescription) -> bool:
    """A Prefill or Decode instance."""
    return job.role is Role.SERVER


def switching(job: JobDescription) -> bool:
    """Active and standby."""
    return narrow(job) and serving(job)


def blocked(job: JobDescription) -> bool:
    """The pod level widens to blocks first."""
    names = (blocks.RA_BLOCK, blocks.SP_BLOCK, blocks.AFFINITY)
    return narrow(job) and job.is_training and any(name in job.annotations for name in names)


OURS: tuple[tuple[str, str, Applies], ...] = (
    ("faults", "node_not_ready_s", always),
    ("ownership", "guard_s", always),
    ("phases", "isolate_s", always),
    ("phases", "withdraw_grace_s", lambda job: server(job) and graceful(job)),
    ("phases", "stop_s", always),
    ("phases", "gone_s", forced),
    ("phases", "stop_grace_s", graceful),
    ("phases", "recreate_s", always),
    ("phases", "place_pod_to_rack_s", lambda job: blocked(job) and blocks.RA_BLOCK in job.annotations),
    ("phases", "place_block_to_next_s", blocked),
    ("phases", "place_pod_to_job_s", narrow),
    ("phases", "capacity_patience_s", always),
    ("phases", "table_s", lambda job: serving(job) or job.is_training),
    ("phases", "rejoin_s", lambda job: narrow(job) and job.is_training),
    ("table", "peer_hold_s", server),
    ("phases", "settle_s", always),
    ("phases", "unverified_after_s", server),
    ("phases", "startup_s", always),
    ("roles", "failover_s", switching),
    ("budgets", "backoff_first_s", always),
    ("budgets", "backoff_max_s", always),
    ("budgets", "stable_s", always),
    ("budgets", "grant_retries_after_s", lambda job: "fault-retry-times" in job.labels),
)
WORDS = {
    "backoff_first_s": "before the second attempt; doubles each time",
    "backoff_max_s": "the longest wait between two attempts",
}


def timeouts(job: JobDescription, *, settings: Settings) -> tuple[Timeout, ...]:
    """All that apply to `job`; none where nobody restarts it."""
    if not job.rescheduled:
        return ()
    return (*_ours(job, settings), *_its_own(job), *_silence(job), *_link(job))


def op_retry(job: JobDescription) -> OpRetry | None:
    """The link recovery of the programs themselves, by container or annotation; None: off or unknown."""
    return op_retry_of((main.visible for _, main in job.mains()), job.annotations)


def _ours(job: JobDescription, settings: Settings) -> Iterator[Timeout]:
    for section, name, applies in OURS:
        if applies(job):
            group = getattr(settings, section)
            field = type(group).model_fields[name]
            yield Timeout(
                name, getattr(group, name), f"setting {section}.{name}", field.description or WORDS[name]
            )


def _its_own(job: JobDescription) -> Iterator[Timeout]:
    if graceful(job):
        for task in job.tasks:
            what = f"{task.kind} pods have so long to end by themselves"
            grace = 30 if task.grace_s is None else task.grace_s
            source = "default of Kubernetes" if task.grace_s is None else "terminationGracePeriodSeconds"
            yield Timeout("termination_grace_s", float(grace), source, what)
    if MIGRATING & set(job.strategies):
        row = parameter("wait-reschedule-timeout")
        text = job.annotations.get(row.name, row.default)
        good = _allowed(row, text)
        source = f"annotation {row.name}" if good and row.name in job.annotations else "default"
        yield Timeout("wait_reschedule_s", float(text if good else row.default), source, row.meaning)
        yield _mindio(job)


def _mindio(job: JobDescription) -> Timeout:
    row = parameter("MINDIO_WAIT_MINDX_TIME")
    value = next((found for _, main in job.mains() if (found := main.visible(row.name)) is not None), "")
    good = _allowed(row, value)
    source = f"variable {row.name}" if good else "default"
    return Timeout("mindio_wait_s", float(value if good else row.default), source, row.meaning)


def _allowed(row: Parameter, text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9 and row.allows(int(text))


def _silence(job: JobDescription) -> Iterator[Timeout]:
    found = silences.windows(job.annotations, role=job.role)
    told = silences.LEVELS in job.annotations
    for source, items in ((silences.CODES, found.codes), (silences.LEVELS, found.levels)):
        for name, seconds in items.items():
            by = f"annotation {source}" if source == silences.CODES or told else "default of MindIE Servers"
            yield Timeout("silence_s", float(seconds), by, f"a fault {name} is borne so long")


def _link(job: JobDescription) -> Iterator[Timeout]:
    retry = op_retry(job)
    if retry is not None:
        what = "a link fault: the programs run their collectives again for so long"
        yield Timeout("op_retry_s", retry.whole_s, "HCCL_OP_RETRY_PARAMS or annotation", what)
