"""The boot copy of a table: one key of the ConfigMap that every MindIE pod mounts and reads once, at boot.

Implements the channels' `ConfigMapPort`. The ConfigMap belongs to the user: other keys, labels and
annotations are left alone, and it is created only where it is absent.
"""

from __future__ import annotations

from mindie_ha.channels.ports import WriteResult
from mindie_ha.cluster.writer import Writer, Written
from mindie_ha.model.errors import Denied, MindieHaError, Refused
from mindie_ha.model.ids import ObjectKey


class BootTables:
    """Writes tables into ConfigMaps."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def write_table(self, namespace: str, name: str, *, key: str, text: str) -> WriteResult:
        """Make `key` of the ConfigMap hold `text`; errors come back as results."""
        try:
            written = await self._writer.change_config_map(
                ObjectKey(namespace, name), name=key, change=lambda _: text
            )
        except (Denied, Refused) as error:
            return WriteResult("refused", str(error))
        except MindieHaError as error:
            return WriteResult("failed", str(error))
        return WriteResult("unchanged" if written is Written.ALREADY else "written")
