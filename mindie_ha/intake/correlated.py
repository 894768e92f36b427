"""Correlated faults of one job as faults of its pods.

Only what hits the job counts, with the cards its pods hold now. A pod that was created after the faults met
is not hit by them: what happened before a job's pod stood there says nothing about it, and must not restart
it again and again while a link stays down. ClusterD says the same by a pod label; both are one cause.

Source: fault input contract §4.6; vectors V83-V86.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mindie_ha.intake.device_lists import physical_name
from mindie_ha.intake.relations import Match, RelationRules, Seen, matches
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family
from mindie_ha.model.pods import Pod

ANNOTATION_A3 = "sp-block"
_REPORTED = (Family.CHIP, Family.NETWORK)


def correlated(
    pods: Iterable[Pod],
    faults: Iterable[Fault],
    *,
    rules: RelationRules,
    annotations: Mapping[str, str],
    now_s: float,
) -> tuple[list[Fault], float | None]:
    """The faults that rules make of `faults`, which hit `pods`; and when time alone changes that."""
    seen = [one for fault in faults for one in _seen(fault)]
    if not seen:
        return [], None
    found, wake_at_s = matches(seen, rules, now_s=now_s, a3=ANNOTATION_A3 in annotations)
    listed = tuple(pods)
    return [fault for match in found for fault in _faults(match, listed, now_s=now_s)], wake_at_s


def _seen(fault: Fault) -> Iterator[Seen]:
    for fact in fault.details:
        at_s = min(fact.told_at_s, fact.first_seen_s) if fact.told_at_s else fact.first_seen_s
        if fact.family in _REPORTED and fault.device:
            yield Seen(fault.node, fault.device, fact.code.upper(), at_s)
        elif fact.family is Family.SWITCH and not fact.listed:
            yield Seen(fault.node, "", fact.code.upper(), at_s)


def _faults(match: Match, pods: tuple[Pod, ...], *, now_s: float) -> Iterator[Fault]:
    for pod in pods:
        if not pod.alive or pod.node != match.node or pod.created_at_s > match.at_s:
            continue
        if match.device and match.device not in map(physical_name, pod.devices):
            continue
        code = match.codes[-1]
        yield Fault(
            source=FaultSource.RELATION,
            cause=Cause.CORRELATED,
            node=match.node,
            device=match.device,
            pod_uid=pod.uid,
            pod=pod.key.name,
            codes=match.codes,
            level=match.level,
            first_seen_s=match.at_s,
            last_seen_s=now_s,
            evidence=f"relation rule: {' with '.join(match.codes)} in the same job",
            details=(CodeFact(code, match.level, Family.RELATION, first_seen_s=match.at_s),),
        )
