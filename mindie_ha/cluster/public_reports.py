"""Public faults as the cluster shows them: ConfigMaps that report some, and our ledger of all.

A ConfigMap is a message that was left lying; reading it is the engine's work, under a key of its own in the
work queue. What counts is the ledger: it is indexed by node here, and an unreadable one changes nothing, so
that no fault is forgotten because somebody edited it.

Source: fault input contract §3.1.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mindie_ha.cluster.slim import SlimConfigMap
from mindie_ha.cluster.touches import Touched, nothing
from mindie_ha.model.ids import PUBLIC_SWEEP, ObjectKey, public_key
from mindie_ha.model.public_faults import PublicFault, PublicFaultLedger

PUBLIC_KEY = "PublicFault"
EMPTY = PublicFaultLedger()


@dataclass(frozen=True, slots=True)
class PublicReport:
    """One ConfigMap with a message."""

    key: ObjectKey
    text: str
    mark: str  # tells this object with this text from every other


class PublicReports:
    """Messages by ConfigMap, faults by node."""

    def __init__(self) -> None:
        self.ledger = EMPTY
        self._reports: dict[ObjectKey, PublicReport] = {}
        self._by_node: dict[str, tuple[PublicFault, ...]] = {}

    def report(self, key: ObjectKey) -> PublicReport | None:
        """The message in a ConfigMap; None where there is none."""
        return self._reports.get(key)

    def on(self, node: str) -> tuple[PublicFault, ...]:
        """The faults that are remembered for a node."""
        return self._by_node.get(node, ())

    def nodes(self) -> frozenset[str]:
        """The nodes with a fault."""
        return frozenset(self._by_node)

    def put(self, item: SlimConfigMap) -> Touched:
        """A ConfigMap as it is now; one without the key says nothing."""
        text = item.data.get(PUBLIC_KEY)
        if text is None:
            return self.drop(item.key)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        report = PublicReport(item.key, text, f"{item.metadata.uid[:8]}:{digest}")
        if self._reports.get(item.key) == report:
            return nothing()
        self._reports[item.key] = report
        return Touched({public_key(item.key)}, set(), urgent=True)

    def drop(self, key: ObjectKey) -> Touched:
        """A ConfigMap is gone; the faults that it reported stay."""
        if self._reports.pop(key, None) is None:
            return nothing()
        return Touched({public_key(key)}, set())

    def remember(self, ledger: PublicFaultLedger) -> Touched:
        """The ledger as it is now."""
        if ledger == self.ledger:
            return nothing()
        self.ledger = ledger
        found: dict[str, list[PublicFault]] = {}
        for fault in ledger.faults:
            found.setdefault(fault.node, []).append(fault)
        old, self._by_node = self._by_node, {node: tuple(faults) for node, faults in found.items()}
        names = old.keys() | self._by_node.keys()
        changed = {name for name in names if old.get(name) != self._by_node.get(name)}
        return Touched({PUBLIC_SWEEP}, changed, urgent=bool(changed))


__all__ = ["EMPTY", "PUBLIC_KEY", "PublicReport", "PublicReports"]
