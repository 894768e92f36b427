"""A person hands a job to us: which labels that takes, and what follows from them. Pure.

Asking twice is asking once. A job that a platform owns is refused, since labels alone would not make it ours;
so is a wish that would have no effect. What is said afterwards is what the claim says, so that the command
cannot promise what the planner does not do.

Source: rescheduling contract §1.1; design §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mindie_ha.model.errors import Conflict, InputError
from mindie_ha.model.settings import Owner, Settings
from mindie_ha.model.workloads import PodGroup, Role, Workload
from mindie_ha.policy.label_values import FAULT_SCHEDULING, POD_RESCHEDULING
from mindie_ha.policy.ownership import Mode, Ownership, claim

ON = "on"
_SAYS = {
    Ownership.ADOPTED: "adopted: its PodGroup carries our annotation, faults are answered from now on",
    Ownership.OURS_EXTERNAL: "ours: Volcano only marks its pods, faults are answered from now on",
    Ownership.OBSERVE: "observed only",
}


def labels(
    workload: Workload,
    podgroup: PodGroup | None,
    *,
    mode: str,
    pod_rescheduling: bool,
    settings: Settings,
) -> Mapping[str, str]:
    """The labels to set, none where they all stand. `mode` "" keeps one that makes the job ours, else force.

    Raises InputError for what has no effect, Conflict for what is not ours to take.
    """
    if mode not in ("", *Mode):
        raise InputError(f"{mode[:40]!r} is no mode", where="mode", advice="force or grace")
    if pod_rescheduling and workload.role is Role.SERVER:
        raise InputError(
            f"{workload.key} is a server instance, which always restarts as a whole",
            where=POD_RESCHEDULING,
            advice="leave it out",
        )
    if workload.maker is not None:
        maker = f"{workload.maker.kind} {workload.maker.name}"
        raise Conflict(
            f"{workload.key} is made by {maker}, which undoes it; label the pods' template there", status=409
        )
    if workload.deleting:
        raise Conflict(f"{workload.key} is being deleted", status=409)
    present = workload.labels.get(FAULT_SCHEDULING)
    managed = claim(workload, None, settings=settings).acts
    wanted = {FAULT_SCHEDULING: mode or (present if managed and present else Mode.FORCE.value)}
    if pod_rescheduling:
        wanted[POD_RESCHEDULING] = ON
    standing = claim(_labelled(workload, wanted), podgroup, settings=settings)
    if standing.notice is not None and standing.ownership is Ownership.PLATFORM:
        raise Conflict(standing.notice.message, status=409)
    return {name: value for name, value in wanted.items() if workload.labels.get(name) != value}


def explained(
    workload: Workload, podgroup: PodGroup | None, *, changed: Mapping[str, str], settings: Settings
) -> tuple[str, ...]:
    """What was done to `workload`, as it was before, and what holds from now on: one sentence each."""
    was = workload.labels
    done = [
        f"label {name} is now {value!r} (was {was.get(name, 'absent')!r})" for name, value in changed.items()
    ]
    after = _labelled(workload, changed)
    done.append(_standing(after, podgroup, settings=settings))
    if after.labels.get(POD_RESCHEDULING) == ON and after.role is not Role.SERVER:
        alone = "it has one pod, so there is no peer to keep and the job restarts as a whole"
        done.append(
            alone if after.replicas == 1 else "only its failed pods are replaced, the job where that fails"
        )
    if after.failed:
        done.append("its owner has declared it Failed for good: delete and apply it anew")
    return tuple(done)


def _standing(workload: Workload, podgroup: PodGroup | None, *, settings: Settings) -> str:
    standing = claim(workload, podgroup, settings=settings)
    guard_s = settings.ownership.guard_s
    if standing.ownership is not Ownership.GUARD:
        return _SAYS.get(standing.ownership, standing.ownership.value)
    if settings.ownership.owner is Owner.VOLCANO:
        return (
            f"guarded: ownership.owner is volcano, which deletes first; we act {guard_s:g} s after it did not"
        )
    when = "with the next look of the controller" if podgroup is not None else "as soon as there is one"
    return f"its PodGroup is adopted {when}; until that is seen Volcano acts first, we after {guard_s:g} s"


def _labelled(workload: Workload, more: Mapping[str, str]) -> Workload:
    return replace(workload, labels={**workload.labels, **more})


__all__ = ["explained", "labels"]
