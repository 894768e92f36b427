"""The manifest of a job against all rules."""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.intake.jobs.descriptions import JobDescription, Surroundings
from mindie_ha.intake.jobs.reading import job_kind, read_job
from mindie_ha.intake.lints.jobs import device_plugins, rings_configs
from mindie_ha.intake.lints.jobs.table import JOB_RULES
from mindie_ha.intake.lints.remarks import Remark, Sheet
from mindie_ha.intake.lints.subjects import Subject

NAME = "job"


def knows(subject: Subject) -> bool:
    """Whether it is the manifest of a job."""
    return job_kind(subject.body) is not None


def look(subject: Subject, around: Surroundings | None = None) -> Sheet:
    """All rules; `around` is what the other objects of the same set say."""
    job = describe(subject, around)
    if job is None:
        return Sheet(subject.title)
    return Sheet(subject.title, NAME, remarks=tuple(remarks(job)))


def describe(subject: Subject, around: Surroundings | None = None) -> JobDescription | None:
    """The job in `subject`, or None."""
    kind = job_kind(subject.body)
    return None if kind is None else read_job(subject.body, kind, places=subject.places, around=around)


def remarks(job: JobDescription) -> Iterable[Remark]:
    """Every finding on `job`."""
    for rule in JOB_RULES:
        if job.kind in rule.kinds:
            yield from rule.remarks(job, job.places)


def surroundings(subjects: Iterable[Subject]) -> Surroundings:
    """What a set of objects says about each of its jobs."""
    subjects = list(subjects)
    plugins = [plugin for subject in subjects if (plugin := device_plugins.read(subject)) is not None]
    resets = [plugin.hot_reset for plugin in plugins if plugin.hot_reset is not None]
    rings = [subject for subject in subjects if rings_configs.knows(subject)]
    return Surroundings(
        hot_reset=1 if 1 in resets else next(iter(resets), None),
        rings=frozenset((subject.namespace, subject.name) for subject in rings),
    )
