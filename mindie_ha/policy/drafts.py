"""The table that a view asks for, before it is compared with the one that was published.

An instance takes part when its own table is valid for exactly its live pods, no recovery is stopping it,
and no peer hold keeps it back. Whoever is left out is named with the reason. What the consumer's loader
would refuse is left out instance by instance, running ones last, so that one bad instance never keeps the
others from being published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import ServiceLedger, WorkloadLedger
from mindie_ha.model.ranktables import (
    CONTROLLER_GROUP,
    COORDINATOR_GROUP,
    Finding,
    FindingCode,
    GlobalTable,
    MsPod,
    Severity,
    TableInstance,
)
from mindie_ha.model.recoveries import Phase, Recovery
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy.gathers import gather
from mindie_ha.policy.instances import judge_instance
from mindie_ha.policy.rungs.gates import STAYS_PUBLISHED
from mindie_ha.ranktable.build import build
from mindie_ha.ranktable.deploys import deploy_server
from mindie_ha.ranktable.encode import digest, encode
from mindie_ha.ranktable.hold import CompleteInstance, Held, peer_hold
from mindie_ha.ranktable.ids import assign_ids
from mindie_ha.ranktable.members import ms_pod
from mindie_ha.ranktable.validate import validate

SERVING = (Phase.ANNOUNCE, Phase.SETTLE)


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be published now. `table` is None when no server instance takes part."""

    table: GlobalTable | None
    ids: Mapping[str, int]
    complete_since_s: Mapping[str, float]
    left_out: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    held: tuple[Held, ...] = ()
    refused: tuple[Finding, ...] = ()  # the loader refuses it, whoever is left out

    def kept_out(self, name: str) -> str:
        """Why instance `name` is not in the table; "" if it is."""
        for held in self.held:
            if held.key == name:
                return held.reason
        findings = self.left_out.get(name, ())
        return findings[0].message if findings else ""


def draft(
    view: ScopeView,
    *,
    published: ServiceLedger,
    ledgers: Mapping[ObjectKey, WorkloadLedger],
    settings: Settings,
    now_s: float,
) -> Draft:
    """The table that `view` and the new `ledgers` ask for."""
    servers = [item for item in view.workloads if item.workload.role is Role.SERVER]
    ids = assign_ids(published.ids, [item.workload.key.name for item in servers])
    complete, left_out = _judge(servers, ledgers)
    since_s = {name: published.complete_since_s.get(name, now_s) for name in complete}
    running = _running(published, complete, ids)
    held = _held(
        servers,
        complete=complete,
        running=running,
        left_out=left_out,
        since_s=since_s,
        settings=settings,
        now_s=now_s,
    )
    waiting = {item.key for item in held}
    chosen = sorted(
        (instance for name, instance in complete.items() if name not in waiting),
        key=lambda instance: (instance.key not in running, ids[instance.key]),
    )
    table, refused_by, refused = _fitted(view, chosen, ids, published=published)
    return Draft(
        table=table,
        ids=ids,
        complete_since_s=since_s,
        left_out={**left_out, **refused_by},
        held=held,
        refused=refused,
    )


def _held(
    servers: list[WorkloadView],
    *,
    complete: Mapping[str, TableInstance],
    running: frozenset[str],
    left_out: Mapping[str, tuple[Finding, ...]],
    since_s: Mapping[str, float],
    settings: Settings,
    now_s: float,
) -> tuple[Held, ...]:
    """Complete instances that are not shown yet: for want of a peer, or for a sibling's sake."""
    for_peer = peer_hold(
        [
            CompleteInstance(
                key=item.workload.key.name,
                role=item.workload.pd_role,
                complete_since_s=since_s[item.workload.key.name],
                published=item.workload.key.name in running,
            )
            for item in servers
            if item.workload.key.name in complete
        ],
        now_s=now_s,
        peer_hold_s=settings.table.peer_hold_s,
    )
    for_siblings = gather(
        complete.keys() - running - {item.key for item in for_peer},
        since_s=since_s,
        siblings=servers,
        left_out=left_out,
        gather_s=settings.table.gather_s,
        now_s=now_s,
    )
    return for_peer + for_siblings


def ms_pods(view: ScopeView, role: Role) -> tuple[MsPod, ...]:
    """The pods of one MS role, over all its workloads."""
    return tuple(ms_pod(pod) for item in view.workloads if item.workload.role is role for pod in item.pods)


def is_stopped(recovery: Recovery | None) -> bool:
    """Whether a recovery is taking the instance's pods away: from the moment `isolate` was left for good
    until its new table is complete. While a first deletion is held its pods may well be serving."""
    if recovery is None or recovery.phase in SERVING:
        return False
    first_try = sum(recovery.attempts.values()) <= 1
    held = recovery.phase is Phase.BACKOFF and recovery.condition in STAYS_PUBLISHED
    return not (first_try and (recovery.phase is Phase.ISOLATE or held))


def _judge(
    servers: list[WorkloadView], ledgers: Mapping[ObjectKey, WorkloadLedger]
) -> tuple[dict[str, TableInstance], dict[str, tuple[Finding, ...]]]:
    complete: dict[str, TableInstance] = {}
    left_out: dict[str, tuple[Finding, ...]] = {}
    for item in servers:
        name = item.workload.key.name
        recovery = ledgers.get(item.workload.key, item.ledger).recovery
        if recovery is not None and is_stopped(recovery):
            what = f"recovery {recovery.epoch} replaces its pods ({recovery.phase})"
            left_out[name] = (Finding(Severity.REJECT, FindingCode.NOT_COMPLETED, name, what),)
            continue
        state = judge_instance(item)
        if state.table is None or not state.publishable or item.rings is None:
            left_out[name] = state.rejections
            continue
        complete[name] = TableInstance(
            key=name, table=state.table, deploy_server=deploy_server(item.rings.labels)
        )
    return complete, left_out


def _running(
    published: ServiceLedger, complete: Mapping[str, TableInstance], ids: Mapping[str, int]
) -> frozenset[str]:
    """Instances that the published table shows exactly as they are now."""
    if not published.generation:
        return frozenset()
    known = _server_lists(published.text)
    table = build(coordinators=(), controllers=(), instances=complete.values(), ids=ids)
    wanted = _server_lists(encode(table))
    return frozenset(name for name in complete if known.get(ids[name]) == wanted.get(ids[name]))


def _server_lists(text: str | bytes) -> dict[int, object]:
    """The server list of each group in one of our own texts; a text that is none shows nobody."""
    try:
        groups = json.loads(text)["server_group_list"]
        return {int(group["group_id"]): group["server_list"] for group in groups}
    except (ValueError, TypeError, KeyError):
        return {}


def _fitted(
    view: ScopeView, chosen: list[TableInstance], ids: Mapping[str, int], *, published: ServiceLedger
) -> tuple[GlobalTable | None, dict[str, tuple[Finding, ...]], tuple[Finding, ...]]:
    """The largest table, taken in order, that the consumer's loader accepts."""
    if not chosen:
        return None, {}, ()
    table = _build(view, chosen, ids)
    if digest(encode(table)) == published.digest:
        return table, {}, ()  # it passed before it was published
    refused = _refusals(table)
    if not refused:
        return table, {}, ()
    kept: list[TableInstance] = []
    left_out: dict[str, tuple[Finding, ...]] = {}
    best: GlobalTable | None = None
    for instance in chosen:
        table = _build(view, [*kept, instance], ids)
        refused = _refusals(table)
        if refused:
            left_out[instance.key] = refused
        else:
            kept.append(instance)
            best = table
    return best, left_out, () if best is not None else refused


def _build(view: ScopeView, instances: list[TableInstance], ids: Mapping[str, int]) -> GlobalTable:
    return build(
        coordinators=ms_pods(view, Role.COORDINATOR),
        controllers=ms_pods(view, Role.CONTROLLER),
        instances=instances,
        ids=ids,
    )


def _refusals(table: GlobalTable) -> tuple[Finding, ...]:
    return tuple(finding for finding in validate(table) if finding.severity is Severity.REJECT)


def empty_ms_groups(view: ScopeView) -> tuple[str, ...]:
    """The MS groups (as ids) for which no pod is usable."""
    table = build(
        coordinators=ms_pods(view, Role.COORDINATOR),
        controllers=ms_pods(view, Role.CONTROLLER),
        instances=(),
        ids={},
    )
    groups = (table.group(COORDINATOR_GROUP), table.group(CONTROLLER_GROUP))
    return tuple(group.group_id for group in groups if group is not None and not group.servers)
