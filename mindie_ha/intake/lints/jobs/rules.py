"""What a rule is: a row with the words for people, and a function that finds the places.

`why` is the reason, `fix` the next step, `about` the parameters (policy/parameters) that it watches. A hit
says what is there; its `fix` replaces that of the row where a better one is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mindie_ha.intake.jobs.descriptions import JobDescription, JobKind
from mindie_ha.intake.jobs.places import Path, Places, shown
from mindie_ha.intake.lints.remarks import Remark, Weight
from mindie_ha.policy.parameters.catalogue import parameter

DOCS = "docs/lint.md"
MAX_HITS = 20  # of one rule on one object

T = TypeVar("T")
JOBS = frozenset({JobKind.ASCEND_JOB, JobKind.VC_JOB})
ASCEND = frozenset({JobKind.ASCEND_JOB})
VC = frozenset({JobKind.VC_JOB})
EVERY = frozenset(JobKind)
ERROR, WARNING, NOTE = Weight.ERROR, Weight.WARNING, Weight.NOTE


@dataclass(frozen=True, slots=True)
class Hit:
    """One place that a rule found."""

    path: Path
    what: str
    fix: str = ""


Hits = Iterable[Hit]


@dataclass(frozen=True)  # no slots: on Python 3.11 they do not go with a call of Rule[…]
class Rule(Generic[T]):
    """One row."""

    code: str
    weight: Weight
    look: Callable[[T], Hits]
    why: str
    fix: str
    about: tuple[str, ...] = ()
    kinds: frozenset[JobKind] = JOBS

    def remarks(self, subject: T, places: Places) -> Iterable[Remark]:
        """Its findings."""
        for number, hit in enumerate(self.look(subject)):
            if number >= MAX_HITS:
                return
            yield Remark(
                self.weight,
                self.code,
                shown(hit.path),
                hit.what,
                advice=hit.fix or self.fix,
                why=self.why,
                line=places.line(hit.path),
                docs=f"{DOCS}#{self.code}",
            )


JobRule = Rule[JobDescription]


def quoted(value: str) -> str:
    """A value of somebody else in a sentence."""
    return f"{value[:60]!r}"


def listed(words: Iterable[str]) -> str:
    """Words in a sentence."""
    return ", ".join(words)


def unknown_word(job: JobDescription, name: str) -> Hits:
    """A label whose value is none of those in the table of parameters."""
    value, known = job.labels.get(name), parameter(name).values
    if value is not None and value not in known:
        yield Hit(
            job.label(name), f"is {quoted(value)}, none of {listed(known)}", fix=_spelling(value, known)
        )


def _spelling(value: str, known: tuple[str, ...]) -> str:
    near = value.strip().lower()
    if near in ("true", "yes") and "on" in known:
        return 'it looks like an unquoted on; write "on" in quotes'
    if near in ("true", "yes", "false", "no") and "off" in known:
        return "it looks like an unquoted on or off; write the word in quotes"
    match = next((word for word in known if word.lower() == near), "")
    return f'write "{match}"' if match else ""
