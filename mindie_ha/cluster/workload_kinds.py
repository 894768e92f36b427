"""The kinds of objects that make pods, one row each: how it is read, and what it says of its workload.

A new kind is a row of `KINDS` and a function; informer, store and ledgers follow the table.
Sources: rescheduling contract §1.1, §4.2, §4.7; motor contract §4.4; Volcano's batch API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mindie_ha.cluster.client import Selection
from mindie_ha.cluster.convert import condition
from mindie_ha.cluster.resources import ASCEND_JOB, DEPLOYMENT, STATEFUL_SET, VOLCANO_JOB, Resource
from mindie_ha.cluster.slim import (
    OwnerReference,
    PodTemplate,
    SlimAscendJob,
    SlimOwner,
    SlimVolcanoJob,
    TemplateContainer,
    TemplateSpec,
)
from mindie_ha.cluster.slim_sets import SlimDeployment, SlimPodSet, SlimStatefulSet
from mindie_ha.intake.jobs.links import op_retry_of
from mindie_ha.intake.jobs.scripts import read_script
from mindie_ha.model.workloads import LABEL_APP, LABEL_JOB_ID, ROLES_BY_APP, Maker, Role, Workload
from mindie_ha.ranktable.pd_roles import GROUP_NAME_LABEL, pd_role

TABLE_VOLUME = "global-ranktable"
LEADERS = ("Master", "Chief", "Scheduler")
LIFTED = frozenset(
    {
        "sp-block",
        "ra-block",
        "sp-fit",
        "huawei.com/schedule_policy",
        "huawei.com/schedule_minAvailable",
        "huawei.com/recover_policy_path",
        "huawei.com/infer_service_schedule",
        "huawei.com/affinity-config",
    }
)
LABEL_OPERATOR = "infer.huawei.com/ascend-infer-operator"
LABEL_SERVICE = "infer.huawei.com/inferservice-name"
LABEL_INSTANCE_ROLE = "infer.huawei.com/role-name"
LABEL_INSTANCE_SET = "infer.huawei.com/instanceset-name"  # its role too, on objects without the label above
MADE_BY_OPERATOR = Selection(labels=f"{LABEL_OPERATOR}=true")  # nobody else's are watched
SINGLE_ROLES = frozenset({"controller", "coordinator"})  # their pods stand each for itself
MAX_RETRY = 3  # of a vcjob that names none

EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind: where it is watched, what it is decoded to, how a workload is read from it."""

    name: str  # of the informer
    resource: Resource
    model: type[SlimOwner]
    read: Callable[[Any], Workload]
    optional: bool = False  # a cluster may forbid us to see it
    selection: Selection = EVERYTHING


def ascend_job(item: SlimAscendJob) -> Workload:
    """An AscendJob."""
    specs = item.spec.replica_specs
    leader = next((specs[name] for name in LEADERS if name in specs), next(iter(specs.values()), None))
    failed = condition(item.status.conditions, "Failed")
    is_failed = failed is not None and failed.status == "True"
    return _workload(
        item,
        ASCEND_JOB,
        replicas=sum(max(0, one.replicas) for one in specs.values()),
        restart_policy=leader.restart_policy or "Never" if leader else "Never",
        templates=[one.template for one in specs.values()],
        failed=f"{failed.reason}: {failed.message}" if failed is not None and is_failed else None,
    )


def volcano_job(item: SlimVolcanoJob) -> Workload:
    """A vcjob; what its controller gave up counts its own `maxRetry`."""
    tasks, state = item.spec.tasks, item.status.state
    told = ": ".join(part for part in (state.reason, state.message) if part)
    limit = item.spec.max_retry or MAX_RETRY
    return _workload(
        item,
        VOLCANO_JOB,
        replicas=sum(max(0, task.replicas) for task in tasks),
        restart_policy=next((task.template.spec.restart_policy for task in tasks), "") or "OnFailure",
        templates=[task.template for task in tasks],
        failed=f"{told or state.phase}; maxRetry is {limit}" if state.phase == "Failed" else None,
    )


def stateful_set(item: SlimStatefulSet) -> Workload:
    """A StatefulSet instance of an InferServiceSet."""
    return _instance(item, STATEFUL_SET)


def deployment(item: SlimDeployment) -> Workload:
    """A Deployment instance of an InferServiceSet."""
    return _instance(item, DEPLOYMENT)


def _instance(item: SlimPodSet, resource: Resource) -> Workload:
    """The operator copies only some labels of the template to the object, so both are read."""
    template = item.spec.template
    labels = {**template.metadata.labels, **item.metadata.labels}
    role = labels.get(LABEL_INSTANCE_ROLE) or labels.get(LABEL_INSTANCE_SET, "")
    found = _workload(
        item,
        resource,
        replicas=max(0, item.spec.replicas),
        restart_policy="Always",
        templates=[template],
        failed=None,
    )
    return replace(
        found,
        role=Role.SERVER,
        pd_role=pd_role(env_role=role, name=item.metadata.name, group_name=None),
        job_id="",
        labels=labels,
        annotations={**template.metadata.annotations, **item.metadata.annotations},
        table_config_map="",
        service=labels.get(LABEL_SERVICE, ""),
        maker=_maker(item.metadata.owner_references),
        bound=role not in SINGLE_ROLES,
    )


def _maker(owners: Iterable[OwnerReference]) -> Maker | None:
    for owner in owners:
        if owner.controller:
            return Maker(owner.api_version, owner.kind, owner.name, owner.uid)
    return None


KINDS = (
    WorkloadKind("ascendjobs", ASCEND_JOB, SlimAscendJob, ascend_job),
    WorkloadKind("vcjobs", VOLCANO_JOB, SlimVolcanoJob, volcano_job, optional=True),
    WorkloadKind(
        "statefulsets", STATEFUL_SET, SlimStatefulSet, stateful_set, optional=True, selection=MADE_BY_OPERATOR
    ),
    WorkloadKind(
        "deployments", DEPLOYMENT, SlimDeployment, deployment, optional=True, selection=MADE_BY_OPERATOR
    ),
)
BY_KIND = {one.resource.kind: one for one in KINDS}
_BY_MODEL = {one.model: one for one in KINDS}


def workload(item: SlimOwner, *, roles: Mapping[str, Role] = ROLES_BY_APP) -> Workload:
    """The workload that an object makes the pods of. `roles`: what it does, by its label `app`."""
    role = roles.get(item.metadata.labels.get(LABEL_APP, ""))
    found = _BY_MODEL[type(item)].read(item)
    return found if role is None or found.service else replace(found, role=role)


def _workload(
    item: SlimOwner,
    resource: Resource,
    *,
    replicas: int,
    restart_policy: str,
    templates: list[PodTemplate],
    failed: str | None,
) -> Workload:
    """`failed`: why the owner gave it up for good; None: it did not."""
    meta = item.metadata
    specs = [template.spec for template in templates]
    containers = (container for spec in specs for container in spec.containers)
    retry = op_retry_of((_visible(container) for container in containers), meta.annotations)
    return Workload(
        key=item.key,
        uid=meta.uid,
        kind=resource.kind,
        role=Role.TRAINING,
        pd_role=pd_role(
            env_role=_env(specs, "ROLE"),
            name=meta.name,
            group_name=meta.labels.get(GROUP_NAME_LABEL),
        ),
        job_id=meta.labels.get(LABEL_JOB_ID, ""),
        replicas=replicas,
        restart_policy=restart_policy,
        labels=meta.labels,
        annotations={**_lifted(templates), **meta.annotations},
        table_config_map=_table_config_map(specs),
        op_retry_s=retry.whole_s if retry is not None else 0.0,
        failed=failed is not None,
        failed_message=failed or "",
        deleting=meta.deletion_timestamp is not None,
        created_at_s=meta.creation_timestamp or 0.0,
    )


def _env(templates: Iterable[TemplateSpec], name: str) -> str | None:
    for template in templates:
        for container in template.containers:
            for variable in container.env:
                if variable.name == name and variable.value:
                    return variable.value
    return None


def _lifted(templates: list[PodTemplate]) -> dict[str, str]:
    """What counts for the job though it stands on its pods."""
    found: dict[str, str] = {}
    for template in templates:
        found |= {name: text for name, text in template.metadata.annotations.items() if name in LIFTED}
    return found


def _visible(container: TemplateContainer) -> Callable[[str], str | None]:
    """What a program in a container finds in a variable: an export in its command beats `env`."""
    env = {variable.name: variable.value for variable in container.env}
    exports = read_script([*container.command, *container.args]).exports
    return lambda name: exports.get(name, env.get(name))


def _table_config_map(templates: Iterable[TemplateSpec]) -> str:
    for template in templates:
        for volume in template.volumes:
            if volume.name == TABLE_VOLUME and volume.config_map is not None:
                return volume.config_map.name
    return ""


__all__ = ["BY_KIND", "KINDS", "MADE_BY_OPERATOR", "WorkloadKind", "workload"]
