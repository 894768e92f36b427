"""May a person have the recovery that they ask for? Pure.

What is asked is put on trial: the planner looks at the service as if the word stood in the ledger already. So
the answer is what will happen, and a rung that would not be taken is refused instead of replaced by another.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from mindie_ha.model.errors import Conflict, InputError
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.recoveries import RUNG_JOB, RUNG_POD
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy import ownership, rearming, requests
from mindie_ha.policy.ladders import ladder
from mindie_ha.policy.planner import plan


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for. `rung` "": `pod` where pods are named, else `job`."""

    person: str
    text: str
    rung: str = ""
    pods: tuple[str, ...] = ()  # names


@dataclass(frozen=True, slots=True)
class Granted:
    """The ledger to write, the rung and pods, and what the controller will say first."""

    ledger: WorkloadLedger
    rung: str
    pods: tuple[str, ...]
    epoch: int
    says: str


def judge(scope: ScopeView, view: WorkloadView, wish: Wish, *, settings: Settings, now_s: float) -> Granted:
    """What becomes of `wish`. Raises InputError for what makes no sense, Conflict for what is refused."""
    rung = wish.rung or (RUNG_POD if wish.pods else RUNG_JOB)
    pods = _pods(view, wish, rung, settings=settings)
    uids = tuple(pod.uid for pod in pods)
    ledger = requests.asked(view.ledger, uids, person=wish.person, text=wish.text, now_s=now_s)
    _refuse(view, settings=settings)
    opened, says = _trial(scope, view, ledger, settings=settings, now_s=now_s)
    if opened != rung:
        why = "no peer that runs would be left, or what is named cannot be replaced alone" if opened else says
        taken = f"; the {opened} rung would be taken" if opened else ""
        raise Conflict(f"{view.workload.key}: not by the {rung} rung: {why}{taken}", status=409)
    return Granted(ledger, rung, tuple(pod.key.name for pod in pods), ledger.epoch + 1, says)


def _pods(view: WorkloadView, wish: Wish, rung: str, *, settings: Settings) -> list[Pod]:
    """The pods that the wish means. Raises InputError."""
    workload = view.workload
    names = [each.name for each in ladder(workload, settings=settings)]
    if workload.role is Role.SERVER and (wish.pods or rung == RUNG_POD):
        what = f"{workload.key} is a server instance, which always restarts as a whole"
        raise InputError(what, where="pods", advice="leave pods and rung out")
    if rung not in (RUNG_JOB, RUNG_POD) or rung not in names:
        advice = f"it has {', '.join(name for name in names if name in (RUNG_JOB, RUNG_POD)) or 'none'}"
        raise InputError(f"{rung[:40]!r} is no rung of {workload.key}", where="rung", advice=advice)
    if (rung == RUNG_POD) != bool(wish.pods):
        raise InputError("the pod rung needs the pods, the job rung takes all", where="pods")
    alive = {pod.key.name: pod for pod in view.pods if pod.alive}
    return (
        list(alive.values()) if rung == RUNG_JOB else [_named(alive, name, view) for name in _once(wish.pods)]
    )


def _named(alive: dict[str, Pod], name: str, view: WorkloadView) -> Pod:
    if name not in alive:
        what = f"{name[:253]!r} is no pod of {view.workload.key} that is there"
        raise InputError(what, where="pods", advice=", ".join(sorted(alive)[:4]))
    return alive[name]


def _once(names: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _refuse(view: WorkloadView, *, settings: Settings) -> None:
    """One sentence for what cannot be: raises Conflict."""
    workload, ledger = view.workload, view.ledger
    claim = ownership.claim(workload, view.podgroup, settings=settings)
    says = ""
    if workload.deleting:
        says = "is being deleted"
    elif not claim.acts:
        says = f"is not ours: `mindie-ha adopt {workload.key}` hands it over"
        if claim.ownership is ownership.Ownership.PLATFORM:
            says = "is not ours, a platform owns it"
    elif ledger.parked is not None:
        says = f"is parked ({ledger.parked.reason}); {rearming.remedy(workload, reason=ledger.parked.reason)}"
    elif ledger.recovery is not None:
        summary = ledger.recovery.intent.summary
        says = f"has recovery {ledger.recovery.epoch} open already: {summary}"
    elif ledger.request is not None:
        who = ledger.request.person.removeprefix("person:")
        says = f"is waiting for the recovery that {who} asked for: {ledger.request.text}"
    elif not any(pod.alive for pod in view.pods):
        says = "has no pod that could be replaced"
    if says:
        raise Conflict(f"{workload.key} {says}", status=409)


def _trial(
    scope: ScopeView, view: WorkloadView, ledger: WorkloadLedger, *, settings: Settings, now_s: float
) -> tuple[str, str]:
    """The rung that the planner would open, "" for none, and its sentence."""
    key = view.workload.key
    asked = replace(view, ledger=ledger)
    workloads = tuple(asked if each.workload.key == key else each for each in scope.workloads)
    decisions = plan(replace(scope, workloads=workloads), settings, now_s).decisions
    decision = next(each for each in decisions if each.workload == key)
    recovery = decision.ledger.recovery
    return (recovery.rung if recovery is not None else ""), decision.sentence


__all__ = ["Granted", "Wish", "judge"]
