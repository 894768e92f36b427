"""The ConfigMap that every MindIE pod reads once, at boot.

Its text is under `global_ranktable.json`; whether a write is needed is seen by that text, not by our memory.
Other keys of the object are not ours and stay.
"""

from __future__ import annotations

from mindie_ha.channels.deliveries import DELIVERED, Outcome
from mindie_ha.channels.ports import ConfigMapPort, ConfigMapTarget, TableVersion

TABLE_KEY = "global_ranktable.json"
MAX_TEXT_BYTES = 1_000_000
"""The API server refuses a ConfigMap above 1 MiB; the rest is for the object around the text."""


class ConfigMapWriter:
    """The attempts of all ConfigMap deliveries."""

    def __init__(self, port: ConfigMapPort) -> None:
        self._port = port

    async def write(self, target: ConfigMapTarget, table: TableVersion) -> Outcome:
        """One write through the port."""
        size = len(table.text.encode())
        if size > MAX_TEXT_BYTES:
            return Outcome(
                "refused", f"a table of {size} bytes does not fit into a ConfigMap ({MAX_TEXT_BYTES} bytes)"
            )
        result = await self._port.write_table(
            target.namespace,
            target.name,
            key=TABLE_KEY,
            text=table.text,
        )
        if result.outcome in {"written", "unchanged"}:
            return DELIVERED
        return Outcome("refused" if result.outcome == "refused" else "failed", result.reason)


__all__ = ["MAX_TEXT_BYTES", "TABLE_KEY", "ConfigMapWriter"]
