"""Which of our taints must stand on a node, since when and until when.

The node's ledger holds every isolation with everybody who wants it: recoveries by name, people, and the
frequency rule. The taint stands exactly while one is in force. An isolation ends when the scheduler's list
shows the card, when its fault has been gone for `release_after_s`, at its own time, when a person takes it
back, or when nobody wants it. We release only what we isolated. What a person took back (by command, or by
removing the taint) stays away while the fault lasts.

Order of writes: the node ledger before the taint when it is set, the taint before the node ledger when it
is lifted; so a taint without a record is never ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.decisions import NodeDecision, Notice
from mindie_ha.model.faults import Cause, Fault
from mindie_ha.model.ledgers import Isolation, NodeLedger
from mindie_ha.model.levels import Level
from mindie_ha.model.nodes import TAINT_ISOLATED
from mindie_ha.model.settings import Settings
from mindie_ha.model.views import NodeView
from mindie_ha.policy import clocks, flaps, isolating, persons


def undo_of(node: str) -> str:
    """How a person takes our taint back."""
    return f"kubectl taint node {node} {TAINT_ISOLATED}:NoSchedule-"


def is_listed(node: NodeView, device: str) -> bool:
    """Whether the scheduler knows that `device` is bad."""
    return node.listed is not None and device in node.listed.unhealthy


def is_well(node: NodeView, device: str) -> bool:
    """Whether everybody who reports on `device` says that nothing is wrong with it."""
    if device in node.publicly_bad:
        return False
    return node.report is not None and device not in node.report.unhealthy


def is_tainted(node: NodeView) -> bool:
    """Whether our taint stands on the node."""
    return any(taint.key == TAINT_ISOLATED for taint in node.node.taints)


def plan_node(view: NodeView, *, wanted: frozenset[str], settings: Settings, now_s: float) -> NodeDecision:
    """Whether our taint must stand on this node. `wanted` names the open recoveries of the whole fleet.

    An unreadable ledger changes nothing. `changed` also covers a taint that has to be set or lifted.
    """
    name = view.node.name
    tainted = is_tainted(view)
    recorded = view.ledger or NodeLedger(node=name, node_uid=view.node.uid)
    ledger = clocks.of_node(recorded, now_s=now_s)
    now = _remembering(ledger, view)
    rule = _by_rules(now, settings=settings, now_s=now_s)
    flapping = flaps.notices(view.node, now_s=now_s)
    if view.ledger_error or not (ledger.isolations or rule or now != ledger):
        return NodeDecision(
            node=name,
            ledger=ledger,
            tainted=tainted,
            changed=False,
            sentence=f"{name} carries our taint without a record" if tainted else "",
            notices=(*flapping, *(_unexplained(view) if tainted else ())),
        )
    reborn = bool(ledger.node_uid) and view.node.exists and ledger.node_uid != view.node.uid
    kept = [
        _seen(isolation, view, tainted=tainted, reborn=reborn, now_s=now_s)
        for isolation in (_healing(item, view, now_s=now_s) for item in _still_wanted(ledger, wanted))
        if not _is_over(isolation, view, settings=settings, now_s=now_s)
    ]
    node_uid = view.node.uid if view.node.exists else ledger.node_uid
    after = now.model_copy(update={"isolations": tuple(kept), "node_uid": node_uid})
    after = _counting(ledger, after, settings=settings, now_s=now_s)
    after, marks = _marking(ledger, after)
    kept = list(after.isolations)
    active = [isolation for isolation in kept if isolation.in_force]
    must_be_tainted = view.node.exists and any(isolation.taints for isolation in active)
    notices = (*flapping, *_overruled(ledger, after), *_told(ledger, after))
    return NodeDecision(
        node=name,
        ledger=after,
        tainted=must_be_tainted,
        changed=after != recorded or (view.node.exists and must_be_tainted != tainted),
        marks=marks,
        sentence=_sentence(name, ledger, active),
        notices=notices,
        wake_at_s=_next_look_s(kept, view, settings=settings),
    )


def _still_wanted(ledger: NodeLedger, wanted: frozenset[str]) -> list[Isolation]:
    """Entries that somebody still wants, without those who do not. A lost node stays wanted until it has
    healed: the recovery that isolated it is over long before, and the node is no better for that."""
    kept = []
    for isolation in ledger.isolations:
        outlives = isolation.until == "healed"
        by = tuple(who for who in isolation.wanted_by if outlives or _stays(who) or who in wanted)
        if by:
            kept.append(isolation.model_copy(update={"wanted_by": by}))
    return kept


def _stays(who: str) -> bool:
    """Whether a wish lasts by itself; that of a recovery lasts as long as the recovery is open."""
    return who.startswith(persons.PERSON) or who == isolating.RULE


def _counting(before: NodeLedger, after: NodeLedger, *, settings: Settings, now_s: float) -> NodeLedger:
    """The ledger with what the frequency rule asks for; where a person took that back, it counts anew."""
    standing = {item.id for item in after.isolations}
    for item in before.isolations:
        if item.reason == isolating.REASON_REPEATED and item.id not in standing:
            after = isolating.uncounted(after, item.device)
    more = _by_rules(after, settings=settings, now_s=now_s)
    return after.model_copy(update={"isolations": (*after.isolations, *more)}) if more else after


def _remembering(ledger: NodeLedger, view: NodeView) -> NodeLedger:
    """The ledger with what came often on the node's cards."""
    if view.recurring is None or view.recurring == ledger.recurring:
        return ledger
    return ledger.model_copy(update={"recurring": view.recurring})


def _by_rules(ledger: NodeLedger, *, settings: Settings, now_s: float) -> tuple[Isolation, ...]:
    """What is to be isolated until a person releases it: by our count, or by the cluster's own rules."""
    ours = isolating.repeated(ledger, settings=settings.faults, now_s=now_s)
    known = {item.id for item in ours}
    theirs = isolating.by_hand(ledger, settings=settings.faults, now_s=now_s)
    return (*ours, *(item for item in theirs if item.id not in known))


def _marking(before: NodeLedger, after: NodeLedger) -> tuple[NodeLedger, frozenset[str] | None]:
    """The ledger as it is once ClusterD was told which cards to take for broken, and those; None: nothing is
    to be told. Only what was recorded before is told: the mark follows the record."""
    recorded = {item.id for item in before.isolations if item.means == "public-fault"}
    gone = recorded - {item.id for item in after.isolations}
    due = {
        item.id
        for item in after.isolations
        if item.id in recorded and item.means == "public-fault" and item.marked is not item.in_force
    }
    if not gone and not due:
        return after, None
    entries = tuple(
        item.model_copy(update={"marked": item.in_force}) if item.id in due else item
        for item in after.isolations
    )
    cards = frozenset(item.device for item in entries if item.id in recorded and item.marked)
    return after.model_copy(update={"isolations": entries}), cards


def _healing(isolation: Isolation, view: NodeView, *, now_s: float) -> Isolation:
    """The entry with the time since when its fault is gone."""
    if _is_healed(isolation, view):
        since_s = isolation.healed_since_s if isolation.healed_since_s is not None else now_s
    else:
        since_s = None
    return isolation.model_copy(update={"healed_since_s": since_s})


def _is_healed(isolation: Isolation, view: NodeView) -> bool:
    if isolation.until in ("released", "time"):
        return False
    if not isolation.device:
        troubled = any(fault.cause == isolation.reason and _is_bad(fault) for fault in view.troubles)
        return view.node.exists and view.node.ready and not troubled
    if isolation.reason == Cause.PUBLIC_FAULT:
        return isolation.device not in view.publicly_bad
    if isolation.reason == Cause.CHIP_FAULT_LISTED and view.report is not None:
        return is_well(view, isolation.device) and isolation.device not in view.report.sub_healthy
    return is_well(view, isolation.device)


def _is_bad(fault: Fault) -> bool:
    """Whether a fault of a node as a whole still asks to keep work off; sub-health does."""
    return fault.acts or any(fact.level is Level.SUB_HEALTH for fact in fault.details)


def _is_over(isolation: Isolation, view: NodeView, *, settings: Settings, now_s: float) -> bool:
    if isolation.until in ("released", "time"):
        ended = isolation.ends_at_s is not None and now_s >= isolation.ends_at_s
        return ended or isolation.overruled_at_s is not None
    if isolation.device and isolation.means == "node-taint" and is_listed(view, isolation.device):
        return True  # by a public fault the list shows it because of us
    lag_is_over = now_s >= isolation.since_s + settings.phases.list_lag_s
    if isolation.until == "listed" and view.listed is None and lag_is_over:
        return True
    healed_since_s = isolation.healed_since_s
    return healed_since_s is not None and now_s >= healed_since_s + settings.faults.release_after_s


def _seen(isolation: Isolation, view: NodeView, *, tainted: bool, reborn: bool, now_s: float) -> Isolation:
    """The entry with what we saw of its taint: there, or taken away by somebody."""
    if isolation.means != "node-taint":
        return isolation
    if reborn:
        return isolation.model_copy(update={"taint_seen": tainted})
    if tainted and isolation.overruled_at_s is None:
        return isolation.model_copy(update={"taint_seen": True})
    if isolation.taint_seen and not tainted and view.node.exists and isolation.overruled_at_s is None:
        return isolation.model_copy(update={"overruled_at_s": now_s})
    return isolation


def _unexplained(view: NodeView) -> tuple[Notice, ...]:
    """Our taint without a record that can be read: nobody would ever lift it, and we may not guess."""
    name = view.node.name
    why = view.ledger_error or "its record was deleted"
    message = (
        f"node {name}: the taint {TAINT_ISOLATED} stands and is not lifted by us any more: {why}; "
        f"when the node is well: {undo_of(name)}"
    )
    return (Notice("TaintWithoutRecord", message, warning=True, key=f"unexplained:{view.node.uid}"),)


def _overruled(before: NodeLedger, after: NodeLedger) -> tuple[Notice, ...]:
    known = {item.id for item in before.isolations if item.overruled_at_s is not None}
    return tuple(
        Notice(
            "IsolationOverruled",
            f"node {after.node}: the taint for {_subject(item)} was removed by hand; it is not set again",
            warning=True,
            key=f"overruled:{after.node}:{item.id}:{item.since_s}",
        )
        for item in after.isolations
        if item.overruled_at_s is not None and not item.overruled_by and item.id not in known
    )


def _told(before: NodeLedger, after: NodeLedger) -> Iterable[Notice]:
    """What people should know: isolated, for good by the frequency rule, released."""
    earlier = {item.id: item for item in before.isolations}
    for item in after.isolations:
        was = earlier.pop(item.id, None)
        key = f"{after.node}:{item.id}:{item.since_s}"
        if was is None and item.reason == isolating.REASON_REPEATED:
            place = item.device or "the node"
            message = f"node {after.node}: {place} was {item.text}; it stays isolated until `{item.undo}`"
            yield Notice("IsolationManual", message, warning=True, key=f"manual:{key}")
        elif was is not None and _is_up(item) and not _is_up(was):
            yield Notice("NodeIsolated", f"node {after.node}: {describe(item)}", key=f"isolated:{key}")
    for item in earlier.values():
        message = f"node {after.node}: {_subject(item)} is released: {_why_over(item)}"
        yield Notice("NodeReleased", message, key=f"released:{after.node}:{item.id}:{item.since_s}")


def _is_up(isolation: Isolation) -> bool:
    """Whether it was seen in effect."""
    return isolation.taint_seen or bool(isolation.marked)


def describe(isolation: Isolation) -> str:
    """One entry in words: `isolated for Ascend910-3 (ChipUnhealthy, 80E18005) until listed`."""
    what = f" for {isolation.device}" if isolation.device else ""
    why = ", ".join((isolation.reason, *isolation.codes[:4]))
    text = f": {isolation.text}" if isolation.text else ""
    return f"isolated{what} ({why}) until {_end(isolation)}{text}"


def _subject(isolation: Isolation) -> str:
    """What is isolated, and for what kind of reason, in words."""
    return f"{isolation.device or 'the whole node'} ({isolation.reason})"


def _end(isolation: Isolation) -> str:
    return "its time is over" if isolation.until == "time" else isolation.until


def _why_over(isolation: Isolation) -> str:
    if isolation.overruled_by:
        return f"by {isolation.overruled_by.removeprefix(persons.PERSON)}"
    if isolation.overruled_at_s is not None:
        return "its taint was removed by hand"
    if isolation.until == "time":
        return "its time is over"
    if isolation.until == "listed":
        return "the scheduler knows, the card is well, or nobody wants it any more"
    return "its fault is gone"


def _sentence(name: str, before: NodeLedger, active: list[Isolation]) -> str:
    if active:
        return f"{name} is isolated: {', '.join(f'{_subject(item)} until {_end(item)}' for item in active)}"
    return f"{name} is released: {', '.join(map(_subject, before.isolations))} is over"


def _next_look_s(kept: Iterable[Isolation], view: NodeView, *, settings: Settings) -> float | None:
    times = []
    for isolation in kept:
        if isolation.until == "listed" and view.listed is None:
            times.append(isolation.since_s + settings.phases.list_lag_s)
        if isolation.ends_at_s is not None:
            times.append(isolation.ends_at_s)
        if isolation.healed_since_s is not None:
            times.append(isolation.healed_since_s + settings.faults.release_after_s)
    return min(times, default=None)
