"""What a recovery isolates: its needs, the obligations it records, and when they let it close.

A lost node is isolated until it healed, a faulty card until the list that the scheduler reads shows it.
Each need becomes an obligation of the recovery before it is set, and the recovery does not end while a new
pod could still be placed on a card that only our taint keeps free. The isolation itself lives in the
node's ledger (`isolations.py`); an obligation only refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mindie_ha.model.decisions import DiscountIsolation, IsolateNode
from mindie_ha.model.faults import Cause, Fault
from mindie_ha.model.ledgers import Isolation
from mindie_ha.model.levels import Level
from mindie_ha.model.recoveries import Obligation, Phase, Recovery
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy import isolating, manners
from mindie_ha.policy.isolations import is_listed, is_tainted, is_well, undo_of
from mindie_ha.policy.looks import Look, wants_name

MARK_TAINT = "node-taint"
_UNPLACED = (Phase.STOP, Phase.GONE, Phase.RECREATE, Phase.PLACE)


# Levels that are about the card, also where the same code shows on several cards of one job.
_OF_THE_CARD = frozenset(
    {
        Level.FREE_RESTART,
        Level.RESTART_NPU,
        Level.PRE_SEPARATE,
        Level.SEPARATE,
        Level.MANUALLY_SEPARATE,
    }
)


@dataclass(frozen=True, slots=True)
class Need:
    """One isolation that a recovery asks for."""

    node: str
    device: str
    reason: str
    codes: tuple[str, ...]
    until: Literal["listed", "healed"]
    counted: bool = True  # whether the frequency rule counts it

    @property
    def id(self) -> str:
        """Its id in the node's ledger."""
        return f"{self.reason}:{self.device or '-'}"

    @property
    def ref(self) -> str:
        """Its name in a recovery's obligations: `<node>/<id>`."""
        return f"{self.node}/{self.id}"


def needs(look: Look) -> tuple[Need, ...]:
    """What the acting faults ask to isolate. A node without an object, or without a readable ledger,
    cannot be tainted; a card that the scheduler's list shows need not be."""
    found: dict[str, Need] = {}
    for fault in look.verdict.acting:
        need = _need(fault)
        node = look.nodes.get(fault.node)
        if need is None or node is None or not node.node.exists or node.ledger_error:
            continue
        if need.device and is_listed(node, need.device):
            continue
        program = _is_the_program(look, fault)
        if program and not _asks_for_isolation(fault):
            continue
        found.setdefault(need.ref, replace(need, counted=not program))
    for need in _where_targets_were(look):
        found.setdefault(need.ref, need)
    return tuple(found.values())


def _where_targets_were(look: Look) -> Iterator[Need]:
    """Cards that failed on nodes which the targets have left, or are leaving. Nobody holds them now, so they
    hit nobody and do not count; but new pods tend to come back there before the list shows the card."""
    recovery = look.view.ledger.recovery
    if recovery is None or recovery.phase not in _UNPLACED:
        return
    for name in sorted({target.node for target in recovery.targets}):
        node = look.nodes.get(name)
        if node is None or node.report is None or not node.node.exists or node.ledger_error:
            continue
        for device in sorted(node.report.unhealthy):
            if not is_listed(node, device):
                yield Need(name, device, Cause.CHIP_UNHEALTHY, (), "listed", counted=False)


def discounts(look: Look, recovery: Recovery) -> tuple[DiscountIsolation, ...]:
    """Isolations that were counted before the same code showed on another card of the job."""
    name = wants_name(look, recovery.epoch)
    found = []
    for fault in look.verdict.acting:
        need, node = _need(fault), look.nodes.get(fault.node)
        past = node.ledger.past if node is not None and node.ledger is not None else ()
        known = need is not None and any(one.counted and (one.id, one.by) == (need.id, name) for one in past)
        if need is not None and known and _is_the_program(look, fault):
            found.append(DiscountIsolation(node=need.node, isolation_id=need.id, by=name))
    return tuple(found)


def _is_the_program(look: Look, fault: Fault) -> bool:
    """Whether the same code on two cards of the job says that no card is at fault."""
    if fault.cause is not Cause.CHIP_UNHEALTHY:
        return False
    return any(
        other.cause is Cause.CHIP_UNHEALTHY
        and (other.node, other.device) != (fault.node, fault.device)
        and abs(other.first_seen_s - fault.first_seen_s) <= isolating.SOFTWARE_WINDOW_S
        and isolating.share_code(fault.codes, other.codes)
        for other in look.verdict.acting
    )


def _asks_for_isolation(fault: Fault) -> bool:
    """Whether a level says that the card itself must be kept free, whatever the program did."""
    return any(fact.level in _OF_THE_CARD for fact in fault.details)


def _need(fault: Fault) -> Need | None:
    match fault.cause:
        case Cause.NODE_NOT_READY:
            return Need(fault.node, "", fault.cause, (), "healed")
        case Cause.NODE_HARDWARE | Cause.SWITCH_UNHEALTHY | Cause.NODE_MARKED:
            return Need(fault.node, "", fault.cause, fault.codes, "healed")
        case Cause.PUBLIC_FAULT:  # perhaps nobody tells the scheduler: the taint stays until it is over
            return Need(fault.node, fault.device, fault.cause, fault.codes, "healed")
        case Cause.CHIP_FAULT_LISTED:  # it acts by the job's strategy; no list closes the card
            return Need(fault.node, fault.device, fault.cause, fault.codes, "healed")
        case Cause.CHIP_UNHEALTHY:
            unlisted = bool(fault.details) and not any(fact.listed for fact in fault.details)
            until: Literal["listed", "healed"] = "healed" if unlisted else "listed"
            return Need(fault.node, fault.device, fault.cause, fault.codes, until)
        case _:
            return None


def entry_of(node: NodeView, isolation_id: str, wanted_by: str) -> Isolation | None:
    """The ledger's entry that `wanted_by` asked for; None: not, or no longer, recorded."""
    for isolation in node.ledger.isolations if node.ledger else ():
        if isolation.id == isolation_id and wanted_by in isolation.wanted_by:
            return isolation
    return None


def obliged(recovery: Recovery, wanted: Iterable[Need], *, now_s: float) -> tuple[Obligation, ...]:
    """The obligations of `recovery` with those for `wanted`."""
    known = {obligation.ref for obligation in recovery.obligations}
    more = tuple(
        Obligation(mark=MARK_TAINT, ref=need.ref, undo=undo_of(need.node), since_s=now_s)
        for need in wanted
        if need.ref not in known
    )
    return (*recovery.obligations, *more)


def in_effect(look: Look, need: Need, recovery: Recovery) -> bool:
    """Whether `need` is served: the taint stands for it, a person overruled it, or its time is over."""
    node = look.nodes[need.node]
    entry = entry_of(node, need.id, wants_name(look, recovery.epoch))
    if entry is not None:
        up = is_tainted(node) if entry.means == "node-taint" else bool(entry.marked)
        return up or not entry.in_force
    since_s = _obliged_since_s(recovery, need.ref)
    return since_s is not None and _lag_is_over(look.settings, node, need, since_s, look.now_s)


def order(look: Look, need: Need, recovery: Recovery) -> IsolateNode:
    """The action that sets `need`."""
    node = look.nodes[need.node].node
    since_s = _obliged_since_s(recovery, need.ref)
    told = need.reason == Cause.PUBLIC_FAULT  # nobody may have told the scheduler
    means = isolating.means_for(need.device, look.settings.faults) if told else "node-taint"
    isolation = Isolation(
        id=need.id,
        device=need.device,
        reason=need.reason,
        codes=need.codes,
        wanted_by=(wants_name(look, recovery.epoch),),
        until=need.until,
        since_s=look.now_s if since_s is None else since_s,
        undo=undo_of(need.node)
        if means == "node-taint"
        else isolating.release_command(need.node, need.device),
        counted=need.counted,
        means=means,
    )
    return IsolateNode(node=need.node, node_uid=node.uid, isolation=isolation)


def blocking(look: Look, recovery: Recovery) -> tuple[Obligation, ...]:
    """Obligations that forbid to close: without the taint a new pod could land on the bad card."""
    return tuple(
        obligation
        for obligation in recovery.obligations
        if manners.stands(look, obligation) or not _may_end(look, obligation, recovery)
    )


def actively_isolated(look: Look, recovery: Recovery) -> frozenset[str]:
    """Nodes on which an isolation of this recovery is in force."""
    name = wants_name(look, recovery.epoch)
    refs = {obligation.ref for obligation in recovery.obligations}
    return frozenset(
        node.node.name
        for node in look.nodes.values()
        for isolation in (node.ledger.isolations if node.ledger else ())
        if f"{node.node.name}/{isolation.id}" in refs and name in isolation.wanted_by and isolation.taints
    )


def _may_end(look: Look, obligation: Obligation, recovery: Recovery) -> bool:
    name, _, isolation_id = obligation.ref.partition("/")
    node = look.nodes.get(name)
    device = isolation_id.partition(":")[2]
    if node is None or not node.node.exists or device == "-":
        return True  # nothing is placed on a lost node
    if is_listed(node, device) or is_well(node, device):
        return True
    entry = entry_of(node, isolation_id, wants_name(look, recovery.epoch))
    if entry is not None and (entry.overruled_at_s is not None or entry.until == "healed"):
        return True  # a person takes it on, or it outlives this recovery
    return node.listed is None and look.now_s >= obligation.since_s + look.settings.phases.list_lag_s


def _obliged_since_s(recovery: Recovery, ref: str) -> float | None:
    for obligation in recovery.obligations:
        if obligation.ref == ref:
            return obligation.since_s
    return None


def _lag_is_over(settings: Settings, node: NodeView, need: Need, since_s: float, now_s: float) -> bool:
    return need.until == "listed" and node.listed is None and now_s >= since_s + settings.phases.list_lag_s
