"""Elastic scaling of inference instances: may this job's pods be created now? (pure)

Entries of the rule are read from the last (smallest) upward; the first one that the Running PodGroups do
not satisfy decides, and it admits a job whose group is still below its number there. Whatever cannot be
read refuses, to be tried later. Source: rescheduling contract §3.6, vectors O22-O26.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindie_ha.sim.actors.ascendjobs import GROUP_NAME, SCALING_RULE, JobSpec
from mindie_ha.sim.actors.documents import dig, is_integer, items, labels_of, load_json, phase_of, text
from mindie_ha.sim.client import Object

RULE_KEY = "elastic_scaling.json"


def may_create(job: JobSpec, rule: Object | None, groups: Sequence[Object]) -> bool:
    """Whether the rule (None: its ConfigMap is missing) lets the job create pods; `groups` are PodGroups."""
    running = running_groups(job, groups)
    targets = read_rule(rule)
    if running is None or targets is None:
        return False
    for target in reversed(targets):
        if any(running.get(name, 0) < count for name, count in target.items()):
            name = job.labels.get(GROUP_NAME, "")
            return running.get(name, 0) < target.get(name, 0)
    return False


def read_rule(rule: Object | None) -> list[dict[str, int]] | None:
    """Group name to number, one mapping per entry; None where the rule is unusable."""
    document = load_json(text(rule or {}, "data", RULE_KEY))
    if text(document, "version") != "1.0":
        return None
    targets = []
    for entry in items(document, "elastic_scaling_list"):
        target: dict[str, int] = {}
        for group in items(entry, "group_list"):
            count = dig(group, "group_num")
            if not isinstance(count, str) or not is_integer(count):
                return None
            target[text(group, "group_name")] = int(count)
        targets.append(target)
    return targets or None


def running_groups(job: JobSpec, groups: Sequence[Object]) -> Mapping[str, int] | None:
    """Running PodGroups of the same rule and service, by group name; None where one has no name."""
    counts: dict[str, int] = {}
    for group in groups:
        found = labels_of(group)
        related = all(found.get(key) == job.labels.get(key) for key in (SCALING_RULE, "jobID"))
        if not related:
            continue
        if not found.get(GROUP_NAME):
            return None
        if phase_of(group) == "Running":
            counts[found[GROUP_NAME]] = counts.get(found[GROUP_NAME], 0) + 1
    return counts
