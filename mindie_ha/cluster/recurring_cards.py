"""What recurs on the cards of a node, from what is known here: its reports, its ledger, who holds its cards.

Only codes that a cluster's own rules name cost anything; without rules nothing is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mindie_ha.cluster.facts import Facts
from mindie_ha.cluster.fault_reports import FaultReports
from mindie_ha.intake import recurring
from mindie_ha.intake.device_lists import physical_name
from mindie_ha.intake.recurrences import Occurrence
from mindie_ha.intake.recurring import Appearance
from mindie_ha.intake.rules import Rules
from mindie_ha.model.faults import Fault
from mindie_ha.model.ledgers import NodeLedger, Recurrence
from mindie_ha.model.nodes import DeviceReport


class RecurringCards:
    """See the module."""

    def __init__(self, *, facts: Facts, reports: FaultReports) -> None:
        self._facts = facts
        self._reports = reports

    @property
    def _rules(self) -> Rules:
        return self._reports.customization.own

    def followed(
        self, node: str, ledger: NodeLedger | None, *, now_s: float
    ) -> tuple[Recurrence, ...] | None:
        """What the node's ledger has to remember now; None: nothing new, there is no rule."""
        known = ledger.recurring if ledger is not None else ()
        if not known and not self._rules.frequency:
            return None
        faults = self._reports.card_faults(node)
        held = self._held(node)
        return recurring.followed(
            known,
            faults,
            rules=self._rules,
            held=held,
            others=tuple(self._elsewhere(node, faults, held)),
            now_s=now_s,
        )

    def raised(self, node: str, ledger: NodeLedger | None, *, now_s: float) -> tuple[Fault, ...]:
        """The faults of the node's cards with the levels that the rules give them."""
        known = ledger.recurring if ledger is not None else ()
        faults = self._reports.card_faults(node)
        return recurring.raised(faults, known, rules=self._rules, now_s=now_s)

    def report(self, node: str, ledger: NodeLedger | None, *, now_s: float) -> DeviceReport | None:
        """The node's report; a card whose code was raised until it acts is not well, whoever lists it."""
        told = self._reports.report(node)
        known = ledger.recurring if ledger is not None else ()
        if told is None or not (known or self._rules.duration):
            return told
        bad = {fault.device for fault in self.raised(node, ledger, now_s=now_s) if fault.acts}
        return replace(told, unhealthy=told.unhealthy | bad)

    def wake_at_s(self, node: str, *, now_s: float) -> float | None:
        """When time alone raises a level on the node."""
        return recurring.raises_at_s(self._reports.card_faults(node), rules=self._rules, now_s=now_s)

    def _held(self, node: str) -> dict[str, str]:
        pods = (self._facts.pods[key] for key in self._facts.by_node.of(node))
        return {physical_name(card): pod.owner_uid for pod in pods if pod.alive for card in pod.devices}

    def _elsewhere(self, node: str, faults: tuple[Fault, ...], held: dict[str, str]) -> Iterator[Appearance]:
        """The same codes on all cards of the jobs that are hit here."""
        codes = {fact.code for fault in faults for fact in fault.details} & self._rules.frequency.keys()
        jobs = {held[fault.device] for fault in faults if fault.device in held} if codes else set()
        for job in jobs:
            pods = [self._facts.pods[key] for key in self._facts.by_owner.of(job)]
            for other in {pod.node for pod in pods if pod.node}:
                cards = held if other == node else self._held(other)
                for fault in self._reports.card_faults(other):
                    for fact in fault.details:
                        if fact.code in codes and cards.get(fault.device) == job:
                            device = fault.device if other == node else f"{other}/{fault.device}"
                            yield Appearance(job, Occurrence(device, fact.code, fact.first_seen_s))
