"""Entries of a node's ledger: added, merged, counted, taken back by a person. Pure.

Recoveries, people (by the API or with a kubeconfig) and the frequency rule change the ledger by these
functions alone, so an entry looks the same whoever wants it: a reason, codes, everybody who wants it, since
when, until when and how to undo it. What follows for the taint is the planner's part (`isolations.py`).

A card (or a node as a whole) that had to be isolated too often within a window stays isolated until a person
releases it. One recovery counts once. The same code on two cards of one job within half a minute is the
program's fault and counts for neither card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Cause
from mindie_ha.model.ledgers import MAX_PAST, Isolation, NodeLedger, PastIsolation
from mindie_ha.model.levels import Level
from mindie_ha.model.nodes import Node
from mindie_ha.model.settings import ChipIsolation, FaultSettings
from mindie_ha.policy import persons

RULE = "rule:frequency"
REASON_PERSON = "Person"
REASON_REPEATED = "Repeated"
SOFTWARE_WINDOW_S = 30.0
MAX_PERSONS = 20
MAX_CARD = 31  # the highest number that a public fault may name
_CARD = re.compile(r".+-(?P<number>[0-9]{1,2})\Z")
SERVERS = (8, 16)  # cards of a server, by model
_CARD_NUMBER = re.compile(r"(?P<family>.+)-(?P<number>[0-9]{1,4})\Z")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._]{0,40}-[0-9]{1,4}\Z")


def means_for(device: str, settings: FaultSettings) -> Literal["node-taint", "public-fault"]:
    """How a card is kept free that the scheduler's own list does not show."""
    match = _CARD.match(device)
    named = match is not None and int(match["number"]) <= MAX_CARD
    by_fault = settings.chip_isolation is ChipIsolation.PUBLIC_FAULT
    return "public-fault" if named and by_fault else "node-taint"


def entry_id(reason: str, device: str) -> str:
    """The stable id of an entry: `<reason>:<device or ->`."""
    return f"{reason}:{device or '-'}"


def release_command(node: str, device: str) -> str:
    """How a person takes an entry back."""
    return f"mindie-ha release {node}" + (f" --device {device}" if device else "")


def for_person(
    node: str,
    *,
    device: str,
    text: str,
    person: str,
    for_s: float | None,
    settings: FaultSettings,
    now_s: float,
) -> Isolation:
    """The entry that a person asks for; `for_s` None: until released. Raises InputError."""
    if device and not _DEVICE.match(device):
        raise InputError(f"{device[:64]!r} is no card", where="device", advice="for example Ascend910-3")
    text = persons.reason(text)
    for_s = persons.lasting(for_s)
    return Isolation(
        id=entry_id(REASON_PERSON, device),
        device=device,
        reason=REASON_PERSON,
        wanted_by=(persons.named(person),),
        until="released" if for_s is None else "time",
        ends_at_s=None if for_s is None else now_s + for_s,
        since_s=now_s,
        undo=release_command(node, device),
        text=text,
        counted=False,
        means=means_for(device, settings),
    )


def card_of(node: Node, device: str) -> None:
    """Refuse a card that a server of this size does not have. Raises InputError.

    A device plugin may have lost cards, so a server is taken to have as many as its model: 8 or 16.
    """
    match = _CARD_NUMBER.match(device)
    if match is None or not node.capacity_npu:
        return
    slots = next((size for size in SERVERS if node.capacity_npu <= size), node.capacity_npu)
    if int(match["number"]) >= slots:
        family = match["family"]
        what = f"node {node.name} has no card {device}, but {family}-0 to {family}-{slots - 1}"
        raise InputError(what, where="device")


def asked_by_person(ledger: NodeLedger, wanted: Isolation) -> NodeLedger:
    """The ledger with a person's entry. One that stands keeps its start and gains the newest words and end;
    one that was taken back is in force again."""
    standing = find(ledger, wanted.id)
    if standing is not None and standing.overruled_at_s is None:
        persons = tuple(dict.fromkeys((*standing.wanted_by, *wanted.wanted_by)))[-MAX_PERSONS:]
        wanted = wanted.model_copy(
            update={
                "since_s": standing.since_s,
                "wanted_by": persons,
                "taint_seen": standing.taint_seen,
                "marked": standing.marked if wanted.means == standing.means else None,
            }
        )
        if wanted.until == "time" and standing.until == "time" and wanted.text == standing.text:
            same_end = abs((wanted.ends_at_s or 0.0) - (standing.ends_at_s or 0.0)) < 1.0
            wanted = wanted.model_copy(update={"ends_at_s": standing.ends_at_s}) if same_end else wanted
    return _with(ledger, wanted)


def merged(ledger: NodeLedger, isolation: Isolation) -> NodeLedger:
    """The ledger with what a recovery asks for; an entry that stands gains the new wishes and codes."""
    standing = find(ledger, isolation.id)
    if standing is not None:
        isolation = standing.model_copy(
            update={
                "wanted_by": tuple(dict.fromkeys((*standing.wanted_by, *isolation.wanted_by))),
                "codes": tuple(dict.fromkeys((*standing.codes, *isolation.codes))),
                "until": isolation.until,
                "healed_since_s": None,
            }
        )
        return _with(ledger, isolation)
    return counted(_with(ledger, isolation), isolation)


def counted(ledger: NodeLedger, isolation: Isolation) -> NodeLedger:
    """The ledger with `isolation` in its past, once for each recovery that asks."""
    by = isolation.wanted_by[0]
    if any((past.id, past.by) == (isolation.id, by) for past in ledger.past):
        return ledger
    new = PastIsolation(
        id=isolation.id,
        device=isolation.device,
        codes=isolation.codes[:16],
        by=by,
        at_s=isolation.since_s,
        counted=isolation.counted,
    )
    alike = [past for past in ledger.past if _same_program(past, new)]
    kept = [past.model_copy(update={"counted": False}) if past in alike else past for past in ledger.past]
    if alike:
        new = new.model_copy(update={"counted": False})
    return ledger.model_copy(update={"past": (*kept, new)[-MAX_PAST:]})


def discounted(ledger: NodeLedger, isolation_id: str, *, by: str) -> NodeLedger:
    """The ledger in which the isolation that `by` asked for does not count."""
    past = tuple(
        one.model_copy(update={"counted": False}) if (one.id, one.by) == (isolation_id, by) else one
        for one in ledger.past
    )
    return ledger if past == ledger.past else ledger.model_copy(update={"past": past})


def released(ledger: NodeLedger, isolation_id: str, *, person: str, now_s: float) -> NodeLedger:
    """The ledger in which a person took an entry back. The entry goes when the taint is off; one for a
    fault that lasts stays, so that the fault does not bring the taint back. What was counted is forgotten."""
    standing = find(ledger, isolation_id)
    if standing is None:
        return ledger
    if standing.overruled_at_s is None:
        update = {"overruled_at_s": now_s, "overruled_by": persons.named(person)}
        ledger = _with(ledger, standing.model_copy(update=update))
    return uncounted(ledger, standing.device)


def uncounted(ledger: NodeLedger, device: str) -> NodeLedger:
    """The ledger without the past of a card (empty: of the node as a whole)."""
    past = tuple(one for one in ledger.past if one.device != device)
    recurring = tuple(one for one in ledger.recurring if one.device != device)
    if (past, recurring) == (ledger.past, ledger.recurring):
        return ledger
    return ledger.model_copy(update={"past": past, "recurring": recurring})


def repeated(ledger: NodeLedger, *, settings: FaultSettings, now_s: float) -> tuple[Isolation, ...]:
    """What the frequency rule asks for and is not there yet."""
    found = []
    for device in sorted({past.device for past in ledger.past}):
        recent = [
            past
            for past in ledger.past
            if past.device == device and past.counted and now_s - past.at_s < settings.manual_window_s
        ]
        standing = find(ledger, entry_id(REASON_REPEATED, device))
        times = len({past.by for past in recent})  # one recovery may have asked for a card twice
        if times < settings.manual_threshold or standing is not None:
            continue
        codes = dict.fromkeys(code for past in recent for code in past.codes)
        found.append(
            Isolation(
                id=entry_id(REASON_REPEATED, device),
                device=device,
                reason=REASON_REPEATED,
                codes=tuple(codes)[:16],
                wanted_by=(RULE,),
                until="released",
                since_s=now_s,
                undo=release_command(ledger.node, device),
                text=f"isolated {times} times within {settings.manual_window_s / 3600:g} h",
                counted=False,
                means=means_for(device, settings),
            )
        )
    return tuple(found)


def by_hand(ledger: NodeLedger, *, settings: FaultSettings, now_s: float) -> tuple[Isolation, ...]:
    """What the cluster's own rules want separated until a person releases it, and is not there yet."""
    found: dict[str, Isolation] = {}
    for one in ledger.recurring:
        name = entry_id(REASON_REPEATED, one.device)
        if one.level != Level.MANUALLY_SEPARATE or name in found or find(ledger, name) is not None:
            continue
        found[name] = Isolation(
            id=name,
            device=one.device,
            reason=REASON_REPEATED,
            codes=(one.code,),
            wanted_by=(RULE,),
            until="released",
            since_s=now_s,
            undo=release_command(ledger.node, one.device),
            text=f"hit by {one.code} as often as faultCustomization.json allows",
            counted=False,
            means=means_for(one.device, settings),
        )
    return tuple(found.values())


def born_again(ledger: NodeLedger, *, node_uid: str) -> NodeLedger:
    """The ledger for the node object that has this name now: no taint of ours was seen on it yet."""
    if not node_uid or ledger.node_uid == node_uid:
        return ledger
    entries = tuple(
        item.model_copy(update={"taint_seen": False, "marked": None}) for item in ledger.isolations
    )
    return ledger.model_copy(update={"node_uid": node_uid, "isolations": entries})


def find(ledger: NodeLedger, isolation_id: str) -> Isolation | None:
    """The entry with this id."""
    return next((item for item in ledger.isolations if item.id == isolation_id), None)


def share_code(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether two cards show the same code."""
    return bool(set(one) & set(other))


def _same_program(past: PastIsolation, new: PastIsolation) -> bool:
    job, _, _ = past.by.rpartition("#")
    return (
        job == new.by.rpartition("#")[0]
        and past.id.startswith(f"{Cause.CHIP_UNHEALTHY}:")
        and past.device != new.device
        and abs(past.at_s - new.at_s) <= SOFTWARE_WINDOW_S
        and share_code(past.codes, new.codes)
    )


def _with(ledger: NodeLedger, isolation: Isolation) -> NodeLedger:
    if find(ledger, isolation.id) is None:
        return ledger.model_copy(update={"isolations": (*ledger.isolations, isolation)})
    entries = tuple(isolation if item.id == isolation.id else item for item in ledger.isolations)
    return ledger.model_copy(update={"isolations": entries})
