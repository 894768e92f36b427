"""Decode instances that stay unlinked after a Prefill was rebuilt: a rule, off by default. Pure.

A rebuilt Prefill has new addresses, and a Decode that does not link to them serves nobody together with it.
Where `coupled.restart_unlinked` says so, such a Decode is restarted: a recovery with its own cause, by the
same phases and limits as any other. Bounds, each of them read from ledgers, so that a restart of ours keeps
them: only after `after_s` without the link, only while the rebuild is younger than `recent_s`, never two at
once of one service, at most `max_restarts` for one rebuild, and never the last Decode that serves.

Only what a Decode itself says counts, in words that can be read; what is not known restarts nobody. A link is
known by an address, so targets of another form are not known.
Source: motor contract §2.4; decision 019.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mindie_ha.model.faults import Cause, Fault, FaultSource
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.recoveries import ClosedRecovery, Outcome, Phase
from mindie_ha.model.settings import CoupledSettings, RestartUnlinked
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy import activity

_BEFORE_STOP = (Phase.ISOLATE, Phase.BACKOFF)
_BACK = (Outcome.RECOVERED, Outcome.RECOVERED_UNVERIFIED)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A Prefill that serves again since its newest recovery."""

    view: WorkloadView
    record: ClosedRecovery

    @property
    def mark(self) -> str:
        """What names this rebuild in the intents of the recoveries that follow from it."""
        return f"{self.view.workload.key.name}#{self.record.epoch}"

    @property
    def ips(self) -> frozenset[str]:
        """Its addresses."""
        return frozenset(pod.ip for pod in self.view.pods if pod.alive and pod.ip)


@dataclass(frozen=True, slots=True)
class Coupled:
    """Who is to be restarted now, and when that may change by itself."""

    faults: Mapping[ObjectKey, tuple[Fault, ...]] = field(default_factory=dict)
    wake_at_s: float | None = None


def to_ask(view: ScopeView, *, settings: CoupledSettings, now_s: float) -> frozenset[ObjectKey]:
    """The Decodes whose links matter now; nobody while the rule is off or no rebuild is recent."""
    if not any(_rebuilt(view, settings=settings, now_s=now_s)):
        return frozenset()
    return frozenset(each.workload.key for each in _decodes(view))


def judge(view: ScopeView, *, settings: CoupledSettings, now_s: float) -> Coupled:
    """At most one Decode of the service, as a fault that hits it."""
    decodes = _decodes(view)
    rebuilt = list(_rebuilt(view, settings=settings, now_s=now_s))
    if not rebuilt:
        return Coupled()
    disturbed = [each for each in decodes if each.ledger.recovery is not None]
    own = [each for each in disturbed if _is_ours(each)]
    candidates = own if own else [] if disturbed else decodes
    times = [one.record.closed_at_s + settings.recent_s for one in rebuilt]  # then nobody is asked any more
    for one in rebuilt:
        spent = _restarts(decodes, one.mark)
        for each in candidates:
            since_s = _unlinked_since_s(each, one)
            mine = each in own
            if since_s is None or not (mine or _may(each, decodes, spent, settings=settings)):
                continue
            due_s = since_s + settings.after_s
            if mine or due_s <= now_s:
                return Coupled({each.workload.key: (_fault(each, one, due_s),)})
            times.append(due_s)
    return Coupled(wake_at_s=min(times))


def _rebuilt(view: ScopeView, *, settings: CoupledSettings, now_s: float) -> Iterator[Rebuilt]:
    if settings.restart_unlinked is RestartUnlinked.NONE:
        return
    for each in view.workloads:
        newest = each.ledger.closed[-1] if each.ledger.closed else None
        prefill = each.workload.role is Role.SERVER and each.workload.pd_role is PdRole.PREFILL
        if not prefill or newest is None or not newest.replacements or newest.outcome not in _BACK:
            continue
        if now_s < newest.closed_at_s + settings.recent_s and _serves(each):
            yield Rebuilt(each, newest)


def _decodes(view: ScopeView) -> list[WorkloadView]:
    found = (
        each
        for each in view.workloads
        if each.workload.role is Role.SERVER and each.workload.pd_role is PdRole.DECODE
    )
    return sorted(found, key=lambda each: each.workload.key)


def _unlinked_since_s(decode: WorkloadView, rebuilt: Rebuilt) -> float | None:
    """Since when a Decode certainly has no link to a rebuilt Prefill, both being up; None if it may have."""
    if not (_serves(decode) or _is_ours(decode)) or not rebuilt.ips:
        return None
    told = [decode.links[pod.uid] for pod in activity.running(decode.pods) if pod.uid in decode.links]
    if not told or any(links.peers is None for links in told):
        return None
    if any(links.peers & rebuilt.ips for links in told if links.peers is not None):
        return None
    starts = (pod.started_at_s or pod.created_at_s for pod in decode.pods)
    began = (rebuilt.record.closed_at_s, decode.ledger.stable_since_s or 0.0)
    return max(*began, *starts, *(links.since_s for links in told))


def _may(decode: WorkloadView, decodes: list[WorkloadView], spent: int, *, settings: CoupledSettings) -> bool:
    """Whether the budget of the rebuild allows it, and somebody goes on serving."""
    if spent >= settings.max_restarts or decode.ledger.parked is not None:
        return False
    others = any(_serves(each) for each in decodes if each is not decode)
    return others or not any(links.peers for links in decode.links.values())


def _restarts(decodes: Iterable[WorkloadView], mark: str) -> int:
    """How many recoveries have followed from a rebuild."""
    records = (
        intent
        for each in decodes
        for intent in (
            *(one.intent for one in each.ledger.closed),
            *((each.ledger.recovery.intent,) if each.ledger.recovery is not None else ()),
        )
    )
    return sum(1 for one in records if one.cause is Cause.PEER_UNLINKED and mark in one.codes)


def _is_ours(item: WorkloadView) -> bool:
    """Whether it has a recovery of this rule open that has deleted nothing yet."""
    recovery = item.ledger.recovery
    return (
        recovery is not None
        and recovery.intent.cause is Cause.PEER_UNLINKED
        and recovery.phase in _BEFORE_STOP
    )


def _serves(item: WorkloadView) -> bool:
    """Whether all its pods run and are Ready, and nothing is wrong with it."""
    pods = activity.running(item.pods)
    whole = len(pods) == item.workload.replicas and all(pod.ready for pod in pods)
    return whole and item.ledger.recovery is None and not any(fault.acts for fault in item.faults)


def _fault(decode: WorkloadView, rebuilt: Rebuilt, due_s: float) -> Fault:
    pod = activity.running(decode.pods)[0]
    name = rebuilt.view.workload.key.name
    return Fault(
        source=FaultSource.SERVICE,
        cause=Cause.PEER_UNLINKED,
        pod_uid=pod.uid,
        pod=pod.key.name,
        codes=(rebuilt.mark,),
        first_seen_s=due_s,
        evidence=f"{decode.workload.key.name} says that it has no link to {name}, which was rebuilt",
    )


__all__ = ["Coupled", "judge", "to_ask"]
