"""Objects that cannot be understood: kept for `status`, told once to whoever shows them to people.

An object is told again only when what is wrong with it changes, so a hostile writer makes no more noise than
an honest mistake. Nothing decides by this; what such an object costs is decided where it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mindie_ha.cluster.slim import SlimObject
from mindie_ha.cluster.sources import Source
from mindie_ha.model.ids import ObjectKey


@dataclass(frozen=True, slots=True)
class Problem:
    """One object and what is wrong with it. `counted`: an informer counted and logged it already."""

    source: Source
    key: ObjectKey
    text: str
    uid: str = ""
    counted: bool = False


ProblemListener = Callable[[Problem], None]


class Problems:
    """What is wrong now, by object."""

    def __init__(self) -> None:
        self.listeners: list[ProblemListener] = []
        self._known: dict[tuple[str, ObjectKey], Problem] = {}

    def note(self, problem: Problem) -> None:
        """Remember it, and tell it where it is news."""
        identity = (problem.source.name, problem.key)
        known = self._known.get(identity)
        self._known[identity] = problem
        if known is None or known.text != problem.text:
            for listener in self.listeners:
                listener(problem)

    def judge(self, source: Source | None, item: SlimObject, text: str | None) -> None:
        """What is wrong with an object; None: nothing, any more."""
        if source is not None and text is None:
            self.clear(source, item.key)
        elif source is not None and text is not None:
            self.note(Problem(source, item.key, text, uid=item.metadata.uid))

    def clear(self, source: Source, key: ObjectKey) -> None:
        """The object is right again, or gone."""
        self._known.pop((source.name, key), None)

    def all(self) -> dict[str, str]:
        """Object -> what is wrong, for people."""
        return {
            f"{problem.source.resource.kind} {problem.key}": problem.text for problem in self._known.values()
        }


__all__ = ["Problem", "ProblemListener", "Problems"]
