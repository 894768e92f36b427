"""What public faults do to each other over time: one state machine for all entries. Pure and immutable.

* `occur`: remembered once. Repeated, it only proves that its sender still means it.
* `recover`: ends the fault, at the earliest `HOLD_S` after it was remembered; where there is none it waits
  `HOLD_S` for a late one, so the two may change places on their way.
* `once`: a fault that ends by itself after `HOLD_S`.

Nothing else ends a fault: neither a deleted ConfigMap nor a restart. One whose sender has been silent for
too long is marked as suspect, because its recovery may have been lost; a `recover` from anybody ends it.
The key is a tuple, where the reference joins two names and so mixes up `ab`+`c` with `a`+`bc`.

Source: fault input contract §3.3; vectors V62-V66, V71; case 043.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mindie_ha.intake import device_info
from mindie_ha.intake.public_messages import Assertion, Influence, Message, ReportedFault
from mindie_ha.model.faults import Cause, CodeFact, Fault, FaultSource
from mindie_ha.model.levels import Family, Level, parse_level
from mindie_ha.model.public_faults import PublicFault, PublicFaultLedger, Recovered

HOLD_S = 5.0
SEEN_STEP_S = 300.0  # a repeated report is written down at most this often
MAX_WEIGHT = 900_000  # upper bound of the state as JSON, in bytes; about 4000 faults
MAX_RECOVERED = 200
MAX_READ = 500

Key = tuple[str, str, str]  # node, resource, fault id


@dataclass(frozen=True, slots=True)
class PublicFaults:
    """All public faults of the cluster."""

    faults: Mapping[Key, PublicFault] = field(default_factory=dict)
    recovered: Mapping[Key, float] = field(default_factory=dict)
    read: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: PublicFaultLedger) -> PublicFaults:
        """The state that a ledger holds."""
        return cls(
            faults={(one.node, one.resource, one.fault_id): one for one in ledger.faults},
            recovered={(one.node, one.resource, one.fault_id): one.until_s for one in ledger.recovered},
            read=dict(ledger.read),
        )

    def ledger(self) -> PublicFaultLedger:
        """The state as it is written down; equal states give equal ledgers."""
        return PublicFaultLedger(
            faults=tuple(self.faults[key] for key in sorted(self.faults)),
            recovered=tuple(
                Recovered(node=node, resource=resource, fault_id=fault_id, until_s=until_s)
                for (node, resource, fault_id), until_s in sorted(self.recovered.items())
            ),
            read=dict(sorted(self.read.items())),
        )

    def next_end_s(self) -> float | None:
        """When something ends by itself."""
        ends = [one.ends_at_s for one in self.faults.values() if one.ends_at_s is not None]
        return min((*ends, *self.recovered.values()), default=None)


@dataclass(frozen=True, slots=True)
class Applied:
    """The state after a message, and how many reports found no room in it."""

    state: PublicFaults
    no_room: int = 0


def apply(state: PublicFaults, message: Message, *, now_s: float) -> Applied:
    """Take one message in, its faults in their order. `state` stays as it is."""
    state = expire(state, now_s=now_s)
    faults, recovered = dict(state.faults), dict(state.recovered)
    room = MAX_WEIGHT - sum(map(_weight, faults.values())) - _READ_WEIGHT * MAX_READ
    no_room = 0
    for reported in message.faults:
        for influence in reported.influences:
            key = (influence.node, message.resource, reported.fault_id)
            if reported.assertion is Assertion.RECOVER:
                _recover(faults, recovered, key, now_s)
                continue
            known = faults.get(key)
            if known is None:
                record = _record(reported, influence, message.resource, recovered.get(key), now_s)
                room -= _weight(record)
                if room < 0:
                    room += _weight(record)
                    no_room += 1
                else:
                    faults[key] = record
            elif reported.assertion is Assertion.OCCUR and now_s >= known.seen_at_s + SEEN_STEP_S:
                faults[key] = known.model_copy(update={"seen_at_s": now_s})
    return Applied(replace(state, faults=faults, recovered=_newest(recovered)), no_room)


def expire(state: PublicFaults, *, now_s: float) -> PublicFaults:
    """Without what has ended; an end further away than `HOLD_S` means that the clock went back."""
    faults = {key: one for key, one in state.faults.items() if not _over(one.ends_at_s, now_s)}
    recovered = {key: until_s for key, until_s in state.recovered.items() if not _over(until_s, now_s)}
    if len(faults) == len(state.faults) and len(recovered) == len(state.recovered):
        return state
    return replace(state, faults=faults, recovered=recovered)


def answered(state: PublicFaults, name: str, content: str) -> PublicFaults:
    """Remember that the ConfigMap `name` was read with this content, so that a restart does not replay it."""
    read = {key: known for key, known in state.read.items() if key != name}
    read[name] = content
    while len(read) > MAX_READ:
        del read[next(iter(read))]
    return replace(state, read=read)


def forgotten(state: PublicFaults, name: str) -> PublicFaults:
    """The ConfigMap `name` is gone; the faults that it reported stay."""
    if name not in state.read:
        return state
    return replace(state, read={key: known for key, known in state.read.items() if key != name})


def faults_on(
    records: Iterable[PublicFault],
    *,
    device_prefix: str,
    now_s: float,
    suspect_after_s: float,
) -> tuple[Fault, ...]:
    """The records of one node as fault records, one for each card, by card and fault."""
    found: list[tuple[int, str, Fault]] = []
    for one in records:
        if _over(one.ends_at_s, now_s):
            continue
        evidence = f"public fault {one.fault_id} of {one.resource}, {one.fault_type}"
        if suspect_after_s and now_s >= one.seen_at_s + suspect_after_s:
            evidence += "; suspect: not reported again for long, its recovery may be lost; send a recover"
        found.extend(
            (number, one.fault_id, _fault(one, f"{device_prefix}-{number}", evidence))
            for number in one.devices
        )
    return tuple(fault for _, _, fault in sorted(found, key=lambda entry: entry[:2]))


def _fault(one: PublicFault, device: str, evidence: str) -> Fault:
    level = parse_level(one.level)
    fact = CodeFact(
        code=one.code,
        level=level,
        family=Family.PUBLIC,
        listed=level not in (Level.NOT_HANDLE, Level.SUB_HEALTH),
        first_seen_s=one.added_at_s,
        told_at_s=float(one.fault_time_s),
    )
    return Fault(
        source=FaultSource.PUBLIC,
        cause=Cause.PUBLIC_FAULT,
        node=one.node,
        device=device,
        codes=(one.code,),
        level=one.level,
        first_seen_s=one.added_at_s,
        last_seen_s=one.seen_at_s,
        evidence=evidence,
        acts=device_info.acts(fact),
        details=(fact,),
    )


def _recover(faults: dict[Key, PublicFault], recovered: dict[Key, float], key: Key, now_s: float) -> None:
    known = faults.get(key)
    if known is None:
        recovered[key] = now_s + HOLD_S
        return
    # A clock that went back must not keep a fault for longer than the hold.
    end_s = min(known.added_at_s, now_s) + HOLD_S
    if end_s <= now_s:
        del faults[key]
        return
    ends_at_s = end_s if known.ends_at_s is None else min(known.ends_at_s, end_s)
    faults[key] = known.model_copy(update={"ends_at_s": ends_at_s})
    recovered[key] = max(end_s, recovered.get(key, end_s))


def _record(
    reported: ReportedFault,
    influence: Influence,
    resource: str,
    recovered_until_s: float | None,
    now_s: float,
) -> PublicFault:
    ends = [] if recovered_until_s is None else [recovered_until_s]
    if reported.assertion is Assertion.ONCE:
        ends.append(now_s + HOLD_S)
    return PublicFault(
        node=influence.node,
        resource=resource,
        fault_id=reported.fault_id,
        fault_type=reported.fault_type,
        code=reported.code,
        level=reported.level,
        devices=influence.devices,
        fault_time_s=reported.time_s,
        added_at_s=now_s,
        seen_at_s=now_s,
        ends_at_s=min(ends, default=None),
    )


def _over(end_s: float | None, now_s: float) -> bool:
    return end_s is not None and not now_s < end_s <= now_s + HOLD_S


def _newest(recovered: dict[Key, float]) -> dict[Key, float]:
    if len(recovered) <= MAX_RECOVERED:
        return recovered
    kept = sorted(recovered, key=recovered.__getitem__)[-MAX_RECOVERED:]
    return {key: recovered[key] for key in kept}


def _weight(one: PublicFault) -> int:
    """An upper bound of its length as JSON."""
    return _FRAME_WEIGHT + len(one.node) + len(one.resource) + len(one.fault_id) + 3 * len(one.devices)


_FRAME_WEIGHT = 300
_READ_WEIGHT = 400  # namespace, name and digest of a ConfigMap


__all__ = [
    "HOLD_S",
    "MAX_WEIGHT",
    "Applied",
    "PublicFaults",
    "answered",
    "apply",
    "expire",
    "faults_on",
    "forgotten",
]
