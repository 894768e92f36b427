"""The JSON document of a run: what `demo --output json` prints. Its shape is an interface; scripts read it.

All times are seconds of the scenario's clock. `recoveries[].phases` is what the ledger says; `deleted`,
`created`, `untouched` and `delivered_to` are what was seen. `ranktables` begins with the table in force at
the first fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

from mindie_ha.demo.episodes import Episode, episodes
from mindie_ha.demo.judging import Verdict
from mindie_ha.demo.observations import Observations, PodLife, TableSeen, server_groups


class Shape(BaseModel):
    """Base of the document."""

    model_config = ConfigDict(frozen=True)


class FaultReport(Shape):
    """A fault as it was set; `device` is empty for a node, `code` is then its condition."""

    node: str
    device: str
    code: str
    at_s: float


class PodReport(Shape):
    """A pod that went or stayed."""

    pod: str
    uid: str


class CreatedReport(PodReport):
    """A pod that came, and what it stands on."""

    node: str
    devices: tuple[str, ...]


class PhaseReport(Shape):
    """One phase; `end_s` is null while it lasts."""

    rung: str
    phase: str
    start_s: float
    end_s: float | None
    exit: str


class RecoveryReport(Shape):
    """One recovery of one workload."""

    workload: str
    epoch: int
    cause: str
    rungs: tuple[str, ...]
    outcome: str
    phases: tuple[PhaseReport, ...]
    deleted: tuple[PodReport, ...]
    created: tuple[CreatedReport, ...]


class DeliveryReport(Shape):
    """Who got a table: a Controller's pod, a ConfigMap or a URL."""

    peer: str
    channel: str
    at_s: float


class TableReport(Shape):
    """One published table; `groups` maps instances to group ids, `servers` counts their pods."""

    generation: int
    digest: str
    at_s: float
    groups: dict[str, str]
    servers: int
    table: dict[str, Any]
    delivered_to: tuple[DeliveryReport, ...]


class ActiveReport(Shape):
    """How long the status called a pod the active one; `to_s` is null while it does."""

    workload: str
    pod: str
    uid: str
    from_s: float
    to_s: float | None


class DemoReport(Shape):
    """The whole document."""

    scenario: str
    ok: bool
    faults: tuple[FaultReport, ...]
    recoveries: tuple[RecoveryReport, ...]
    untouched: tuple[PodReport, ...]
    ranktables: tuple[TableReport, ...]
    actives: tuple[ActiveReport, ...]


def report(scenario: str, observations: Observations, verdict: Verdict) -> DemoReport:
    """The document of a run."""
    fault_s = observations.first_fault_s()
    untouched = [pod for pod in observations.pods.values() if pod.here_at(fault_s) and pod.deleted_s is None]
    return DemoReport(
        scenario=scenario,
        ok=verdict.ok,
        faults=tuple(
            FaultReport(node=each.node, device=each.device, code=each.code, at_s=_round(each.at_s))
            for each in observations.faults
        ),
        recoveries=tuple(_recovery(each) for each in episodes(observations)),
        untouched=tuple(_pod(pod) for pod in sorted(untouched, key=lambda pod: pod.key)),
        ranktables=tuple(_table(observations, each) for each in observations.tables_since_fault()),
        actives=tuple(_actives(observations)),
    )


def _recovery(episode: Episode) -> RecoveryReport:
    return RecoveryReport(
        workload=episode.workload,
        epoch=episode.epoch,
        cause=episode.cause,
        rungs=episode.rungs,
        outcome=episode.outcome,
        phases=tuple(
            PhaseReport(
                rung=each.rung,
                phase=each.phase,
                start_s=_round(each.start_s),
                end_s=_round(each.end_s) if each.end_s is not None else None,
                exit=each.exit,
            )
            for each in episode.phases
        ),
        deleted=tuple(_pod(pod) for pod in episode.deleted),
        created=tuple(
            CreatedReport(pod=pod.key, uid=pod.uid, node=pod.node, devices=pod.devices)
            for pod in episode.created
        ),
    )


def _actives(observations: Observations) -> Iterator[ActiveReport]:
    for workload in sorted({each.workload for each in observations.actives}):
        history = [each for each in observations.actives if each.workload == workload]
        for seen, following in zip(history, [*history[1:], None], strict=True):
            to_s = following.at_s if following is not None else None
            if to_s is not None and to_s <= observations.first_fault_s():
                continue
            for name, uid in seen.pods:
                yield ActiveReport(
                    workload=workload,
                    pod=name,
                    uid=uid,
                    from_s=_round(seen.at_s),
                    to_s=_round(to_s) if to_s is not None else None,
                )


def _pod(pod: PodLife) -> PodReport:
    return PodReport(pod=pod.key, uid=pod.uid)


def _table(observations: Observations, table: TableSeen) -> TableReport:
    following = next(
        (
            each
            for each in observations.tables
            if each.version > table.version and each.digest == table.digest
        ),
        None,
    )
    until_s = following.at_s if following is not None else float("inf")
    earlier = [
        each for each in observations.tables if each.version < table.version and each.digest == table.digest
    ]
    from_s = table.at_s if earlier else 0.0
    delivered = [
        DeliveryReport(peer=each.peer, channel=each.channel, at_s=_round(each.at_s))
        for each in observations.deliveries
        if each.digest == table.digest and from_s <= each.at_s < until_s
    ]
    return TableReport(
        generation=table.generation,
        digest=table.digest,
        at_s=_round(table.at_s),
        groups={name: group_id for name, (group_id, _) in observations.groups_of(table.text).items()},
        servers=sum(len(addresses) for _, addresses in server_groups(table.text)),
        table=orjson.loads(table.text),
        delivered_to=tuple(delivered),
    )


def _round(seconds: float) -> float:
    return round(seconds, 3)


__all__ = ["DemoReport", "report"]
