"""Tells ClusterD which cards of a node to keep free: one ConfigMap with a public fault message for each node.

It is written only where it says something else, so a repeated order finds its work done. It carries a label
by which we know it for our own and never take it for a report.
"""

from __future__ import annotations

from collections.abc import Set

from mindie_ha.cluster.documents import mark_key
from mindie_ha.cluster.sources import LABEL_MARK, LABEL_PUBLIC
from mindie_ha.cluster.writer import Writer
from mindie_ha.intake.public_marks import marked
from mindie_ha.kit.clock import Clock
from mindie_ha.model.settings import Settings

KEY = "PublicFault"
LABELS = {LABEL_PUBLIC: "true", LABEL_MARK: "card", "app.kubernetes.io/managed-by": "mindie-ha"}


class Marks:
    """See the module."""

    def __init__(self, *, writer: Writer, settings: Settings, clock: Clock) -> None:
        self._writer = writer
        self._settings = settings
        self._clock = clock

    async def keep(self, node: str, devices: Set[str]) -> None:
        """Exactly `devices` are kept free from now on. Raises ClusterError."""
        faults = self._settings.faults
        now_s = self._clock.wall()
        await self._writer.change_config_map(
            mark_key(self._settings.cluster.namespace, node),
            name=KEY,
            change=lambda text: marked(
                text,
                node=node,
                devices=devices,
                resource=faults.mark_resource,
                code=faults.mark_code,
                now_s=now_s,
            ),
            labels=LABELS,
        )
