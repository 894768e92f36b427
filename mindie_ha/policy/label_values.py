"""What a value of a job's switch labels means, and the words for a value that means nothing.

Promise: the log, the Event and `mindie-ha lint` say the same of the same value, since all of them ask here.
`judge` takes a value as it stands in a file, where an unquoted `on` is already a YAML boolean, or as it
reached us through the API server, where every value is text. Nothing is guessed: a value that only looks
like a switch counts as if the label were absent, and the message says what to write.

Three things can become of a value: it is one that is known; it is text that a cluster keeps but nobody acts
on; or the API server refuses the object, so that it never reaches a cluster.

Source: rescheduling contract §1.1; design §7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

FAULT_SCHEDULING = "fault-scheduling"
POD_RESCHEDULING = "pod-rescheduling"

_SWITCHES = frozenset({"on", "off", "true", "false", "yes", "no", "y", "n"})  # booleans of YAML 1.1
_SYNTAX = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_SHOWN = 80  # characters of a value that a message repeats


class Standing(StrEnum):
    """What becomes of a value."""

    KNOWN = "known"
    IGNORED = "ignored"  # it counts as if the label were absent
    REFUSED = "refused"  # the API server refuses an object that carries it


@dataclass(frozen=True, slots=True)
class LabelVerdict:
    """The word on one value. `message` and `advice` are empty where the value is known."""

    label: str
    standing: Standing
    message: str = ""
    advice: str = ""

    @property
    def sentence(self) -> str:
        """Message and advice in one line, as log, Event and lint have it."""
        return f"{self.message}: {self.advice}" if self.message else ""


@dataclass(frozen=True, slots=True)
class _Rule:
    known: tuple[str, ...]
    effect: str  # of a value that is not known
    advice: str


_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        FAULT_SCHEDULING: _Rule(
            ("force", "grace", "external-force", "external-grace", "off"),
            "the job is not managed",
            'it must be one of force, grace, external-force, external-grace, "off"',
        ),
        POD_RESCHEDULING: _Rule(
            ("on", "off"),
            "a failure restarts all pods of the job",
            'only "on", in quotes, lets the failed pod alone be replaced',
        ),
    }
)
LABELS = tuple(_RULES)
"""The labels that `judge` knows."""


def judge(label: str, value: object) -> LabelVerdict:
    """The word on `value` of one of `LABELS`; None is a label that is absent. KeyError for other labels.

    `value` is what a YAML or JSON parser gave, or the text that an API server keeps.
    """
    rule = _RULES[label]
    if value is None or (isinstance(value, str) and value in rule.known):
        return LabelVerdict(label, Standing.KNOWN)
    if isinstance(value, bool):
        word = "true" if value else "false"
        switch = "on, yes or true" if value else "off, no or false"
        what = f"label {label} is the YAML boolean {word} (an unquoted {switch})"
        return LabelVerdict(label, Standing.REFUSED, f"{what}; the API server refuses it", rule.advice)
    if not isinstance(value, str):
        what = f"label {label} is no text"
        return LabelVerdict(label, Standing.REFUSED, f"{what}; the API server refuses it", rule.advice)
    shown = repr(value[:_SHOWN])
    if not _SYNTAX.fullmatch(value):
        why = "a label value has letters, digits, '-', '_', '.', and begins and ends with a letter or digit"
        what = f"label {label} is {shown}; the API server refuses it, as {why}, at most 63 of them"
        return LabelVerdict(label, Standing.REFUSED, what, rule.advice)
    look_alike = " (it looks like an unquoted YAML on/off)" if value.lower() in _SWITCHES else ""
    what = f"label {label} is {shown}{look_alike}, so {rule.effect}"
    return LabelVerdict(label, Standing.IGNORED, what, rule.advice)


__all__ = ["FAULT_SCHEDULING", "LABELS", "POD_RESCHEDULING", "LabelVerdict", "Standing", "judge"]
