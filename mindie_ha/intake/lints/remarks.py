"""What lint says about an object: findings with a place and a next step, and what the object means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """How much a finding matters; a note changes no exit code."""

    ERROR = "error"  # the object, or a part of it, is refused by its readers
    WARNING = "warning"  # it is read, but not as somebody may think
    NOTE = "note"


class CheckCode(StrEnum):
    """What became of the checksum."""

    NONE = ""  # this kind of object has none
    FITS = "fits"
    MISMATCH = "does not fit"
    ABSENT = "absent"
    UNKNOWN = "cannot be computed"  # the content is unreadable


@dataclass(frozen=True, slots=True)
class Remark:
    """One finding. `code` is a bounded word for machines; `why` the reason where `what` does not say it,
    `docs` where more is written, `line` that of the file (0: unknown)."""

    weight: Weight
    code: str
    where: str
    what: str
    advice: str = ""
    why: str = ""
    line: int = 0
    docs: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything about one object. `rule` names who looked; empty: nobody knows this object."""

    name: str  # "<file>: <kind> <namespace>/<name>"
    rule: str = ""
    check_code: CheckCode = CheckCode.NONE
    remarks: tuple[Remark, ...] = ()
    meaning: tuple[str, ...] = ()  # what its readers take from it
    file: str = ""
    document: int = 1

    @property
    def is_wrong(self) -> bool:
        """Whether something was found that a person should change."""
        return any(remark.weight is not Weight.NOTE for remark in self.remarks)


def worst(sheets: Iterable[Sheet]) -> bool:
    """Whether any sheet has a finding."""
    return any(sheet.is_wrong for sheet in sheets)
