"""Recoveries as they were seen: what the ledgers said, joined with which pods really went and came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mindie_ha.demo.observations import LedgerSeen, Observations, PodLife

OPEN = "open"
PARKED = "parked"


@dataclass(frozen=True, slots=True)
class PhaseSeen:
    """One phase that a recovery went through; `end_s` is None while it lasts."""

    rung: str
    phase: str
    start_s: float
    end_s: float | None
    exit: str


@dataclass(frozen=True, slots=True)
class Episode:
    """One recovery of one workload. `outcome` is `open` while it has none."""

    workload: str
    epoch: int
    cause: str
    summary: str
    rungs: tuple[str, ...]
    outcome: str
    opened_s: float
    closed_s: float | None
    phases: tuple[PhaseSeen, ...]
    deleted: tuple[PodLife, ...]
    created: tuple[PodLife, ...]


def episodes(observations: Observations) -> tuple[Episode, ...]:
    """Every recovery that any ledger ever told of, in the order in which they were opened."""
    newest: dict[tuple[str, int], tuple[dict[str, Any], LedgerSeen]] = {}
    for ledger in observations.ledgers:
        for body in _recoveries(ledger):
            newest[ledger.workload, body["epoch"]] = body, ledger
    found = [_episode(observations, body, ledger) for body, ledger in newest.values()]
    return tuple(sorted(found, key=lambda each: (each.opened_s, each.workload)))


def _recoveries(ledger: LedgerSeen) -> Iterator[dict[str, Any]]:
    yield from ledger.body.get("closed", ())
    if ledger.recovery is not None:
        yield ledger.recovery


def _episode(observations: Observations, body: dict[str, Any], ledger: LedgerSeen) -> Episode:
    opened_s = observations.scenario_s(body["opened_at_s"])
    closed_s = observations.scenario_s(body["closed_at_s"]) if "closed_at_s" in body else None
    phases = tuple(_phases(observations, body))
    rungs = tuple(body.get("rungs") or dict.fromkeys(each.rung for each in phases if each.rung))
    outcome = body.get("outcome") or (PARKED if ledger.body.get("parked") else OPEN)
    targets = {each["uid"] for each in body.get("targets", ())}
    deleted, created = _moves(observations, ledger.workload, opened_s, closed_s, targets)
    return Episode(
        workload=ledger.workload,
        epoch=body["epoch"],
        cause=body["intent"]["cause"],
        summary=body["intent"]["summary"],
        rungs=rungs,
        outcome=outcome,
        opened_s=opened_s,
        closed_s=closed_s,
        phases=phases,
        deleted=deleted,
        created=created,
    )


def _phases(observations: Observations, body: dict[str, Any]) -> Iterator[PhaseSeen]:
    for each in body.get("history", ()):
        end_s = each.get("end_s")
        yield PhaseSeen(
            rung=each["rung"],
            phase=each["phase"],
            start_s=observations.scenario_s(each["start_s"]),
            end_s=observations.scenario_s(end_s) if end_s is not None else None,
            exit=each.get("exit", ""),
        )


def _moves(
    observations: Observations, workload: str, opened_s: float, closed_s: float | None, targets: set[str]
) -> tuple[tuple[PodLife, ...], tuple[PodLife, ...]]:
    """Pods of the workload that went and came while the recovery was open, by name; and those that others
    had deleted before it was opened, which it names as `targets`."""
    until_s = float("inf") if closed_s is None else closed_s
    pods = [pod for pod in observations.pods.values() if pod.workload == workload]
    deleted = [
        pod
        for pod in pods
        if pod.deleted_s is not None
        and pod.deleted_s <= until_s
        and (opened_s <= pod.deleted_s or pod.uid in targets)
    ]
    created = [
        pod
        for pod in pods
        if opened_s <= pod.created_s <= until_s and (pod.deleted_s is None or pod.deleted_s > until_s)
    ]
    return tuple(sorted(deleted, key=_by_name)), tuple(sorted(created, key=_by_name))


def _by_name(pod: PodLife) -> str:
    return pod.name


__all__ = ["OPEN", "PARKED", "Episode", "PhaseSeen", "episodes"]
