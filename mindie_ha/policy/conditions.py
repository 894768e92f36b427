"""Reasons for a recovery that are no fault of a machine or a program: conditions of a whole service. Pure.

* A Controller that had subscribed to us, and whose Ready pod has not for `unsubscribed_s`, has given up for
  good: that pod is restarted. Only the time counts in which we listened ourselves.
* A Controller whose job was rebuilt has to get the Coordinators to serve within `state_lost_s`, where a
  Prefill and a Decode run all that time. If not, it has lost what it knew of the servers. By setting it
  parks, or the servers that are older than it are restarted once before it parks. What cannot be known counts
  as served.

Both look only at the view, so a restart of ours changes nothing but the first clock, which starts anew.
Source: motor contract §1.3 (retry), §9 (3); design §5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import WorkloadLedger
from mindie_ha.model.pods import Pod
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.recoveries import RUNG_JOB, ClosedRecovery, Phase
from mindie_ha.model.roles import Streams
from mindie_ha.model.settings import RoleSettings, StateLost
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy import activity

_BEFORE_STOP = (Phase.ISOLATE, Phase.BACKOFF)
_HALVES = {
    PdRole.PREFILL: frozenset({PdRole.PREFILL}),
    PdRole.DECODE: frozenset({PdRole.DECODE}),
    PdRole.HYBRID: frozenset({PdRole.PREFILL, PdRole.DECODE}),
    PdRole.UNKNOWN: frozenset({PdRole.PREFILL, PdRole.DECODE}),
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for a service now, by workload. `wake_at_s`: when that may change by itself."""

    faults: Mapping[ObjectKey, tuple[Fault, ...]] = field(default_factory=dict)
    lost: Mapping[ObjectKey, str] = field(default_factory=dict)  # Controllers to park, and why
    served: bool = False  # a Coordinator serves
    wake_at_s: float | None = None


def judge(view: ScopeView, *, settings: RoleSettings, now_s: float) -> Conditions:
    """The conditions of a service."""
    found: dict[ObjectKey, tuple[Fault, ...]] = {}
    lost: dict[ObjectKey, str] = {}
    times: list[float] = []
    for item in view.workloads:
        if item.workload.role is not Role.CONTROLLER:
            continue
        given_up = _gave_up(item, view.streams, settings)
        if given_up is not None and given_up.first_seen_s > now_s:
            times.append(given_up.first_seen_s)
        elif given_up is not None:
            found[item.workload.key] = (given_up,)
        loss = _loss(view, item, settings)
        if loss is None:
            continue
        if loss.at_s > now_s:
            times.append(loss.at_s)
        elif loss.stale and settings.controller_state_lost is StateLost.RESTART_SERVERS:
            found |= {key: (_stale_fault(pod, loss),) for key, pod in loss.stale.items()}
        else:
            lost[item.workload.key] = loss.message
    return Conditions(
        faults=found,
        lost=lost,
        served=any(map(_serves, _pods_of(view, Role.COORDINATOR))),
        wake_at_s=min(times, default=None),
    )


# --- a Controller that gave up -----------------------------------------------------------------------------


def _gave_up(item: WorkloadView, streams: Streams, settings: RoleSettings) -> Fault | None:
    """The pod to restart, as a fault that is first seen when it is due."""
    since_s, ledger = streams.none_since_s, item.ledger
    if since_s is None or not ledger.subscribed_uid:
        return None
    pod = _suspect(item)
    if pod is None:
        return None
    since_s = max(since_s, ledger.stable_since_s or 0.0, pod.started_at_s or pod.created_at_s)
    waited = f"no table stream for {settings.unsubscribed_s:g} s, though this Controller had one before"
    return Fault(
        source=FaultSource.SERVICE,
        cause=Cause.CONTROLLER_UNSUBSCRIBED,
        pod_uid=pod.uid,
        pod=pod.key.name,
        first_seen_s=since_s + settings.unsubscribed_s,
        evidence=f"pod {pod.key.name}: {waited}",
    )


def _suspect(item: WorkloadView) -> Pod | None:
    """The Ready pod that most likely leads: the last subscriber, else the oldest. While a recovery is open it
    is the one that it was opened for."""
    ready = [pod for pod in activity.running(item.pods) if pod.ready]
    recovery = item.ledger.recovery
    if recovery is not None:
        mine = recovery.intent.cause is Cause.CONTROLLER_UNSUBSCRIBED and recovery.phase in _BEFORE_STOP
        targets = {target.uid for target in recovery.targets} if mine else set()
        return next((pod for pod in ready if pod.uid in targets), None)
    last = [pod for pod in ready if pod.uid == item.ledger.subscribed_uid]
    by_age = sorted(ready, key=lambda pod: (pod.started_at_s or pod.created_at_s, pod.key))
    return next(iter((*last, *by_age)), None)


# --- a Controller that lost its state ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Loss:
    """When a rebuilt Controller counts as having lost its state; the servers that are older than it."""

    at_s: float
    message: str
    stale: Mapping[ObjectKey, Pod]


def _loss(view: ScopeView, item: WorkloadView, settings: RoleSettings) -> _Loss | None:
    ledger = item.ledger
    rebuilt = _rebuilt(ledger)
    if rebuilt is None or ledger.recovery is not None or ledger.parked is not None:
        return None
    servers = [each for each in view.workloads if each.workload.role is Role.SERVER]
    stale = dict(_stale(servers, rebuilt.closed_at_s))
    message = (
        f"{settings.state_lost_s:g} s after its job was rebuilt no Coordinator serves, though Prefill and "
        "Decode run: it does not know its servers any more. Restart the servers, or let "
        "roles.controller_state_lost: restart-servers do that"
    )
    if any(_restarts(each.ledger, rebuilt) for each in servers) and stale:
        return _Loss(0.0, message, stale)  # begun, so it is finished
    coordinators = _pods_of(view, Role.COORDINATOR)
    running = [each for each in servers if _runs(each)]
    halves = {half for each in running for half in _HALVES[each.workload.pd_role]}
    silent = bool(coordinators) and all(map(_serves_not, coordinators))
    if not silent or len(halves) < len(_HALVES[PdRole.HYBRID]):
        return None
    starts = [pod.started_at_s or pod.created_at_s for each in running for pod in each.pods]
    starts += [pod.started_at_s or pod.created_at_s for pod, _ in coordinators]
    told_s = ledger.rearmed.at_s if ledger.rearmed is not None else 0.0
    since_s = max(rebuilt.closed_at_s, told_s, *starts)
    return _Loss(since_s + settings.state_lost_s, message, stale)


def _rebuilt(ledger: WorkloadLedger) -> ClosedRecovery | None:
    """The newest recovery, if it rebuilt the job and the Coordinators have not served since."""
    newest = ledger.closed[-1] if ledger.closed else None
    if newest is None or not newest.rungs or newest.rungs[-1] != RUNG_JOB:
        return None
    return newest if ledger.proven_epoch != newest.epoch else None


def _stale(servers: Iterable[WorkloadView], rebuilt_s: float) -> Iterator[tuple[ObjectKey, Pod]]:
    for each in servers:
        pod = next((pod for pod in each.pods if pod.alive and pod.created_at_s < rebuilt_s), None)
        if pod is not None:
            yield each.workload.key, pod


def _restarts(ledger: WorkloadLedger, rebuilt: ClosedRecovery) -> bool:
    """Whether a server is, or was, restarted because of this very loss."""
    records = (*ledger.closed, *((ledger.recovery,) if ledger.recovery is not None else ()))
    return any(
        one.intent.cause is Cause.CONTROLLER_STATE_LOST and one.opened_at_s >= rebuilt.closed_at_s
        for one in records
    )


def _stale_fault(pod: Pod, loss: _Loss) -> Fault:
    return Fault(
        source=FaultSource.SERVICE,
        cause=Cause.CONTROLLER_STATE_LOST,
        pod_uid=pod.uid,
        pod=pod.key.name,
        first_seen_s=loss.at_s,
        evidence="the rebuilt Controller does not get this service to serve",
    )


def _runs(item: WorkloadView) -> bool:
    whole = len(activity.running(item.pods)) == item.workload.replicas
    return whole and item.ledger.recovery is None and not any(fault.acts for fault in item.faults)


def _pods_of(view: ScopeView, role: Role) -> list[tuple[Pod, bool | None]]:
    """The pods of a role that run, each with whether it serves, as far as that is known."""
    return [
        (pod, _word(pod, each))
        for each in view.workloads
        if each.workload.role is role
        for pod in activity.running(each.pods)
    ]


def _word(pod: Pod, item: WorkloadView) -> bool | None:
    role = item.roles.get(pod.uid)
    if role is not None and role.serves is not None:
        return role.serves
    return pod.ready if pod.has_readiness_probe else None


def _serves(found: tuple[Pod, bool | None]) -> bool:
    return found[1] is True


def _serves_not(found: tuple[Pod, bool | None]) -> bool:
    return found[1] is False


__all__ = ["Conditions", "judge"]
