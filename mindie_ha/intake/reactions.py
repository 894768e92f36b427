"""One fault and one workload: does it act now, later, or not at all.

Every code of a fault is asked by itself: its level gives the effect on this kind of workload, the job's
silence windows may put it off, a sub-health strategy may turn a record into a recovery. The fault acts as
soon as one of its codes does. Faults without codes (a lost node, a failed pod) keep what their source said.

Source: `policy/effects.py`; fault input contract §4.4; case 049.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mindie_ha.intake.silences import Windows
from mindie_ha.model.faults import Cause, CodeFact, Fault
from mindie_ha.model.levels import Level, worst
from mindie_ha.policy.effects import Effect, Subject, row_of, strategy_recovers


@dataclass(frozen=True, slots=True)
class Reactions:
    """How one workload answers faults."""

    subject: Subject
    windows: Windows
    strategy: str
    resetting_s: float

    def to(self, fault: Fault, *, now_s: float) -> tuple[Fault, float | None]:
        """The fault as it stands for this workload, and when that changes by itself."""
        if fault.cause is Cause.CHIP_RESETTING:
            acts_at_s = fault.first_seen_s + self.resetting_s
            return replace(fault, acts=now_s >= acts_at_s), acts_at_s if now_s < acts_at_s else None
        if not fault.details or fault.cause is Cause.CHIP_SEPARATED:
            return fault, None
        asking = [fact for fact in fault.details if self._asks(fact)]
        acting = [fact for fact in asking if now_s >= self.windows.until_s(fact)]
        later = [self.windows.until_s(fact) for fact in asking if fact not in acting]
        level = worst((fact.level for fact in acting or asking or fault.details), default=Level.UNKNOWN)
        silent = not acting and bool(later)
        return (
            replace(
                fault,
                acts=bool(acting),
                level="" if level is Level.UNEXPLAINED else level,
                evidence=f"{fault.evidence}; silent until {min(later):.0f}" if silent else fault.evidence,
            ),
            None if acting else min(later, default=None),
        )

    def _asks(self, fact: CodeFact) -> bool:
        effect = row_of(fact.family, fact.level).on(self.subject)
        match effect:
            case Effect.LISTED:
                return fact.listed
            case Effect.STRATEGY:
                return strategy_recovers(self.strategy)
            case _:
                return effect.recovers
