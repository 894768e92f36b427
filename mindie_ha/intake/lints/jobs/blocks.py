"""Blocks of cards and schedule policies.

Source: rescheduling contract §1.1, §2.5; rank table contract §6.1, §6.4.
"""

from __future__ import annotations

import re
from itertools import pairwise

from mindie_ha.intake.jobs.descriptions import JobDescription
from mindie_ha.intake.lints.jobs.rules import (
    ERROR,
    WARNING,
    Hit,
    Hits,
    JobRule,
    listed,
    quoted,
    unknown_word,
)
from mindie_ha.model.workloads import Role
from mindie_ha.policy.parameters.catalogue import parameter
from mindie_ha.policy.parameters.placement import SUPER_POD_POLICIES
from mindie_ha.policy.parameters.products import SMP_ACCELERATOR_TYPES, SMP_CARDS

SP_BLOCK = "sp-block"
POLICY = "huawei.com/schedule_policy"
AFFINITY = "huawei.com/affinity-config"
_WHOLE = re.compile(r"[0-9]{1,7}\Z")
_LEVEL = re.compile(r"\s*level([0-9]{1,2})\s*=\s*([0-9]{1,7})\s*\Z")


def sp_block_value(job: JobDescription) -> Hits:
    """An `sp-block` that is no number of cards."""
    if SP_BLOCK in job.annotations and _block(job) is None:
        yield Hit(job.annotation(SP_BLOCK), f"is {quoted(job.annotations[SP_BLOCK])}")


def sp_block_arithmetic(job: JobDescription) -> Hits:
    """An `sp-block` that does not fit the cards of pods and job."""
    block = _block(job)
    if block is None or not job.cards or job.role is Role.SERVER:
        return
    sizes = {task.cards for task in job.tasks if task.cards and task.replicas}
    pods = sum(task.replicas for task in job.tasks if task.cards)
    path = job.annotation(SP_BLOCK)
    if pods == 1 and block != job.cards:
        yield Hit(path, f"is {block}, but the one pod asks for {job.cards} cards", fix=f'write "{job.cards}"')
    elif pods > 1 and any(block % size for size in sizes):
        yield Hit(path, f"is {block}, no multiple of the {max(sizes)} cards of a pod")
    elif pods > 1 and job.cards % block:
        yield Hit(path, f"is {block}; the {job.cards} cards of the job are no multiple of it")


def sp_block_instance(job: JobDescription) -> Hits:
    """An `sp-block` of a MindIE instance that is not all its cards."""
    block = _block(job)
    if block is not None and job.role is Role.SERVER and job.cards and block != job.cards:
        yield Hit(
            job.annotation(SP_BLOCK),
            f"is {block}, but the instance has {job.cards} cards",
            fix=f'write "{job.cards}"',
        )


def schedule_policy_value(job: JobDescription) -> Hits:
    """A `schedule_policy` that is none of its words."""
    value = job.annotations.get(POLICY)
    if value is not None and value not in parameter(POLICY).values:
        yield Hit(job.annotation(POLICY), f"is {quoted(value)}")


def schedule_policy_no_list(job: JobDescription) -> Hits:
    """A policy under which the rank table gets no super-pod list, though sp-block asks for one."""
    value = job.annotations.get(POLICY)
    if SP_BLOCK in job.annotations and value in parameter(POLICY).values and value not in SUPER_POD_POLICIES:
        sibling = f"{value}-sp"
        fix = f'write "{sibling}"' if sibling in SUPER_POD_POLICIES else ""
        yield Hit(job.annotation(POLICY), f"is {value}, beside sp-block", fix=fix)


def ra_block(job: JobDescription) -> Hits:
    """An `ra-block` that is none of its words."""
    value, known = job.annotations.get("ra-block"), parameter("ra-block").values
    if value is not None and value not in known:
        yield Hit(job.annotation("ra-block"), f"is {quoted(value)}, none of {listed(known)}")


def affinity_config(job: JobDescription) -> Hits:
    """An `affinity-config` that cannot be read, or whose levels do not fit each other."""
    value = job.annotations.get(AFFINITY)
    if value is None:
        return
    levels = [_LEVEL.match(item) for item in value.split(",")]
    if any(match is None for match in levels):
        yield Hit(job.annotation(AFFINITY), f"is {quoted(value)}")
        return
    sizes = [int(match[2]) for match in levels if match is not None]
    numbers = [int(match[1]) for match in levels if match is not None]
    if numbers != list(range(1, len(numbers) + 1)):
        yield Hit(job.annotation(AFFINITY), f"is {quoted(value)}: the levels are not 1, 2, 3 … in order")
    elif not all(sizes) or any(after % before for before, after in pairwise(sizes)):
        yield Hit(job.annotation(AFFINITY), f"is {quoted(value)}: a level is no multiple of the one before")


def multilevel_alone(job: JobDescription) -> Hits:
    """A multilevel job without `affinity-config`."""
    if job.annotations.get(POLICY) == "multilevel" and AFFINITY not in job.annotations:
        yield Hit(job.annotation(AFFINITY), "is missing, but schedule_policy is multilevel")


def super_pod_affinity(job: JobDescription) -> Hits:
    """A `super-pod-affinity` that is none of its words."""
    return unknown_word(job, "super-pod-affinity")


def tor_affinity(job: JobDescription) -> Hits:
    """A `tor-affinity` that is none of its words."""
    return unknown_word(job, "tor-affinity")


def small_smp_pod(job: JobDescription) -> Hits:
    """Pods that may not be rescheduled on an old server in SMP mode."""
    if not job.is_training or not job.rescheduled:
        return
    for task in job.tasks:
        if task.cards in SMP_CARDS and task.node_selector.get("accelerator-type") in SMP_ACCELERATOR_TYPES:
            yield Hit(
                (*task.pod_path, "containers"),
                f"asks for {task.cards} NPUs a pod on an Atlas 800 training server",
            )


def _block(job: JobDescription) -> int | None:
    value = job.annotations.get(SP_BLOCK, "")
    return int(value) if _WHOLE.match(value) and int(value) else None


RULES: tuple[JobRule, ...] = (
    JobRule(
        "sp-block-value",
        ERROR,
        sp_block_value,
        "it is a whole number of cards above 0",
        'write a number in quotes, "16"',
        about=("sp-block",),
    ),
    JobRule(
        "sp-block-arithmetic",
        ERROR,
        sp_block_arithmetic,
        "a logical super-pod is made of whole pods, and the job of whole super-pods",
        "choose a multiple of the cards of a pod that divides those of the job",
        about=("sp-block",),
    ),
    JobRule(
        "sp-block-instance",
        ERROR,
        sp_block_instance,
        "the cards of a MindIE instance stand in one super-pod",
        "write the number of all cards of the instance",
        about=("sp-block",),
    ),
    JobRule(
        "schedule-policy-value",
        ERROR,
        schedule_policy_value,
        "Volcano knows no such policy",
        "see the list in docs/jobs.md",
        about=("huawei.com/schedule_policy",),
    ),
    JobRule(
        "schedule-policy-no-list",
        WARNING,
        schedule_policy_no_list,
        "under this policy the rank table is of version 1.0 and has no super-pod list, whatever sp-block "
        "says",
        "write chip2-node16-sp, chip2-node8-sp or multilevel",
        about=("huawei.com/schedule_policy", "sp-block"),
    ),
    JobRule(
        "ra-block",
        ERROR,
        ra_block,
        "a rack block is a power of two up to 64",
        "write one of 1, 2, 4, 8, 16, 32, 64",
        about=("ra-block",),
    ),
    JobRule(
        "affinity-config",
        ERROR,
        affinity_config,
        "its form is level1=2,level2=4, each a multiple of the one before",
        "write it so",
        about=("huawei.com/affinity-config",),
    ),
    JobRule(
        "multilevel-alone",
        ERROR,
        multilevel_alone,
        "the sizes of the levels stand in it",
        "write huawei.com/affinity-config",
        about=("huawei.com/affinity-config", "huawei.com/schedule_policy"),
    ),
    JobRule(
        "super-pod-affinity",
        WARNING,
        super_pod_affinity,
        "any other value means hard",
        "write soft or hard",
        about=("super-pod-affinity",),
    ),
    JobRule(
        "tor-affinity",
        WARNING,
        tor_affinity,
        "Volcano knows no such value",
        "write large-model-schema, normal-schema or null",
        about=("tor-affinity",),
    ),
    JobRule(
        "small-smp-pod",
        WARNING,
        small_smp_pod,
        "where the cards of such a server work in SMP mode, pods with 1 or 2 NPUs are not rescheduled",
        "see the working mode in the iBMC (npuworkmode), or ask for 4 or 8",
        about=("accelerator-type",),
    ),
)
