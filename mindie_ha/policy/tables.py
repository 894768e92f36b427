"""What happens to a service's table: published anew, kept as it is, or kept back.

Promise: generations only grow; an equal digest is never sent again; a table without a server instance is
never published, the last one stays; ids, generation, digest and the text itself are in the ledger before
anything is delivered. Ownership plays no role here: tables are published for every service.

Source: design §6; rank table contract §2.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindie_ha.model.decisions import Notice, TableDecision
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import ServiceLedger, WorkloadLedger
from mindie_ha.model.recoveries import Phase
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import ScopeView, TableView, WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.policy.drafts import Draft, draft, empty_ms_groups
from mindie_ha.policy.looks import TableStanding
from mindie_ha.policy.table_remarks import remarks
from mindie_ha.ranktable.encode import digest, encode


def plan_table(
    view: ScopeView, *, ledgers: Mapping[ObjectKey, WorkloadLedger], settings: Settings, now_s: float
) -> TableDecision | None:
    """Decide about the table of `view`; None for a scope without one."""
    if view.table is None:
        return None
    before = view.table.ledger
    if view.table.ledger_error:
        message = f"{view.scope}: the table's ledger is unreadable, nothing new is published"
        notice = Notice(
            "LedgerUnreadable", f"{message}: {view.table.ledger_error}", warning=True, key=f"{view.scope}"
        )
        return TableDecision(
            ledger=before, publish=False, sentence=message, notices=(notice,), about=_told_at(view)
        )
    wanted = draft(view, published=before, ledgers=ledgers, settings=settings, now_s=now_s)
    empty_since_s, ms_wait_s = _empty_groups(view, before, settings=settings, now_s=now_s)
    kept = before.model_copy(
        update={
            "ids": dict(wanted.ids),
            "complete_since_s": dict(wanted.complete_since_s),
            "empty_since_s": empty_since_s,
        }
    )
    ledger, sentence, notices = _judge(view, wanted, kept, ms_wait_s=ms_wait_s, now_s=now_s)
    config_map, config_map_notices = _config_map(view, view.table)
    remarked, told_at_s = remarks(view, wanted, settings=settings, now_s=now_s)
    waits = [*(held.until_s for held in wanted.held), ms_wait_s, told_at_s]
    times = [each for each in waits if each is not None]
    return TableDecision(
        ledger=ledger,
        publish=ledger.generation != before.generation,
        sentence=sentence,
        config_map=config_map,
        left_out=tuple(sorted(wanted.left_out.items())),
        held=tuple((held.key, held.until_s) for held in wanted.held),
        notices=(*notices, *config_map_notices, *remarked),
        about=_told_at(view),
        wake_at_s=min(times, default=None),
    )


def _told_at(view: ScopeView) -> ObjectKey | None:
    """The Controller, which reads the table; else whoever is there."""
    keys = [item.workload.key for item in view.workloads if item.workload.role is Role.CONTROLLER]
    return next(iter([*keys, *(item.workload.key for item in view.workloads)]), None)


def standing(
    view: ScopeView, workload: WorkloadView, *, settings: Settings, now_s: float
) -> TableStanding | None:
    """Where the published table stands for `workload`, judged as if its recovery announced it now."""
    if view.table is None:
        return None
    ledgers = {item.workload.key: item.ledger for item in view.workloads}
    recovery = workload.ledger.recovery
    if recovery is not None:
        announced = recovery.model_copy(update={"phase": Phase.ANNOUNCE})
        ledgers[workload.workload.key] = workload.ledger.model_copy(update={"recovery": announced})
    published = view.table.ledger
    wanted = draft(view, published=published, ledgers=ledgers, settings=settings, now_s=now_s)
    kept_out = wanted.kept_out(workload.workload.key.name)
    if workload.workload.role is not Role.SERVER and wanted.table is None:
        kept_out = "no server instance is left, the last table is kept"
    current = wanted.table is not None and digest(encode(wanted.table)) == published.digest
    return TableStanding(
        current=current,
        subscribers=view.table.subscribers,
        handed_to_all=view.table.handed_to_all,
        kept_out=kept_out,
    )


def _judge(
    view: ScopeView, wanted: Draft, kept: ServiceLedger, *, ms_wait_s: float | None, now_s: float
) -> tuple[ServiceLedger, str, tuple[Notice, ...]]:
    """The ledger to write and why: with a new generation, or without."""
    if wanted.refused:
        message = f"{view.scope}: the consumer would refuse the table: {wanted.refused[0].message}"
        notice = Notice("TableRejected", message, warning=True, key=f"rejected:{view.scope}")
        return kept, message, (notice,)
    if wanted.table is None:
        return _no_servers(view, kept, wanted)
    if ms_wait_s is not None:
        return kept, "waiting a moment for a usable MS pod before publishing empty groups", ()
    data = encode(wanted.table)
    if digest(data) == kept.digest:
        return kept, f"generation {kept.generation} is current", ()
    ledger = kept.model_copy(
        update={
            "generation": kept.generation + 1,
            "digest": digest(data),
            "text": data.decode(),
            "published_at_s": now_s,
        }
    )
    count = len(wanted.table.groups) - 2
    return ledger, f"publishing generation {ledger.generation} with {count} instances", ()


def _no_servers(
    view: ScopeView, kept: ServiceLedger, wanted: Draft
) -> tuple[ServiceLedger, str, tuple[Notice, ...]]:
    if kept.generation == 0:
        return kept, "no server instance was complete yet, nothing to publish", ()
    held = f"; held back: {', '.join(item.key for item in wanted.held)}" if wanted.held else ""
    sentence = f"no server instance is left, generation {kept.generation} is kept{held}"
    notice = Notice(
        "NoServersLeft", f"{view.scope}: {sentence}", warning=True, key=f"no-servers:{view.scope}"
    )
    return kept, sentence, (notice,)


def _empty_groups(
    view: ScopeView, before: ServiceLedger, *, settings: Settings, now_s: float
) -> tuple[dict[str, float], float | None]:
    """Since when MS groups are empty, and until when their emptiness is not believed."""
    since_s = {group: before.empty_since_s.get(group, now_s) for group in empty_ms_groups(view)}
    until_s = max((time + settings.table.empty_ms_after_s for time in since_s.values()), default=0.0)
    return since_s, (until_s if now_s < until_s else None)


def _config_map(view: ScopeView, table: TableView) -> tuple[ObjectKey | None, tuple[Notice, ...]]:
    """Where the boot copy goes: the ConfigMap that the service's pods mount."""
    names = sorted({item.workload.table_config_map for item in view.workloads} - {""})
    if not names:
        return None, ()
    key = ObjectKey(view.scope.namespace, names[0])
    if not table.shared_with:
        return key, ()
    others = ", ".join(name.removeprefix("service:") for name in table.shared_with)
    message = f"ConfigMap {key} is mounted by the service {others} too, so no table is written into it"
    return None, (Notice("SharedTable", message, warning=True, key=f"shared:{view.scope}"),)
