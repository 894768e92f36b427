"""Owners of pods that bear the name of a workload of another kind: they wait until its name is free.

A name is one workload, in ledgers and commands, so the one that came first keeps it. Nobody tells of the
others again when it goes, so they are kept here.
"""

from __future__ import annotations

from mindie_ha.cluster.slim import SlimOwner
from mindie_ha.model.ids import ObjectKey


class Namesakes:
    """At most one object per kind and name, for as long as it exists."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[type[SlimOwner], ObjectKey], SlimOwner] = {}

    def wait(self, item: SlimOwner) -> None:
        """Its name is taken."""
        self._waiting[type(item), item.key] = item

    def forget(self, item: SlimOwner) -> None:
        """It has its name, or is gone."""
        self._waiting.pop((type(item), item.key), None)

    def heir(self, key: ObjectKey) -> SlimOwner | None:
        """Who takes a name that is free: the oldest of those who wait."""
        waiting = [item for (_, name), item in self._waiting.items() if name == key]
        return min(waiting, key=lambda item: item.metadata.creation_timestamp or 0.0, default=None)


__all__ = ["Namesakes"]
