"""Where a rule set writes its findings down, and the checks that all ConfigMap rules share.

`Notebook.reading` turns an `InputError` of a parser into a finding, so that one broken key does not hide what
is wrong with the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from mindie_ha.intake import bodies
from mindie_ha.intake.lints.remarks import CheckCode, Remark, Sheet, Weight
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Fault

MAX_REMARKS = 50
COMMENTS = ("#", "//", "/*")


class Notebook:
    """Collects what is said about one ConfigMap."""

    def __init__(self, subject: Subject, *, rule: str) -> None:
        self.subject = subject
        self._rule = rule
        self._remarks: list[Remark] = []
        self._meaning: list[str] = []
        self.check_code = CheckCode.NONE

    def error(self, code: str, where: str, what: str, advice: str = "") -> None:
        """Something that its readers refuse."""
        self._add(Weight.ERROR, code, where, what, advice)

    def warn(self, code: str, where: str, what: str, advice: str = "") -> None:
        """Something that its readers take otherwise than somebody may think."""
        self._add(Weight.WARNING, code, where, what, advice)

    def note(self, code: str, where: str, what: str, advice: str = "") -> None:
        """Something worth knowing."""
        self._add(Weight.NOTE, code, where, what, advice)

    def means(self, sentence: str) -> None:
        """What its readers take from it."""
        if len(self._meaning) < MAX_REMARKS:
            self._meaning.append(sentence)

    def means_faults(self, faults: Iterable[Fault]) -> None:
        """The faults that its readers take from it; none is worth a sentence, too."""
        found = list(faults)
        for fault in found:
            place = fault.device or "the node"
            codes = f" ({', '.join(fault.codes[:8])})" if fault.codes else ""
            level = f", level {fault.level}" if fault.level else ""
            self.means(f"{fault.cause}: {place}{codes}{level}; {'acts' if fault.acts else 'recorded only'}")
        if not found:
            self.means("no fault")

    @contextmanager
    def reading(self, code: str) -> Iterator[None]:
        """An InputError inside becomes a finding."""
        try:
            yield
        except InputError as error:
            self.error(code, error.where, error.what, error.advice)

    def sheet(self) -> Sheet:
        """Everything that was said."""
        return Sheet(
            self.subject.title, self._rule, self.check_code, tuple(self._remarks), tuple(self._meaning)
        )

    # -- what every ConfigMap is asked ---------------------------------------------------------------

    def belongs(self, *, namespace: str, label: str, writer: str) -> None:
        """Whether it stands where its readers look; empty: they do not care."""
        subject = self.subject
        if namespace and subject.namespace != namespace:
            found = f"namespace is {subject.namespace or 'not given'}"
            self.error("wrong-namespace", "metadata.namespace", found, f"it is only read in {namespace}")
        if label and subject.labels.get(label) != "true":
            advice = f'add the label {label}: "true", as {writer} does; without it nobody watches the object'
            self.warn("no-label", "metadata.labels", f'label {label} is not "true"', advice)

    def texts(self, known: Iterable[str]) -> dict[str, str]:
        """`data` as strings; another type, and a key that nobody reads, is a finding."""
        if not isinstance(self.subject.body.get("data"), dict):
            self.error("no-data", "data", "is missing or no mapping", "a dump of the object has it")
        found: dict[str, str] = {}
        names = tuple(known)
        for key, value in self.subject.data.items():
            if not isinstance(value, str):
                self.error("no-string", f"data.{key}", "is no string", "put the value in quotes")
                continue
            found[key] = value
            if names and key not in names:
                known_keys = f"readers know {', '.join(names)}"
                self.warn("unknown-key", f"data.{key}", "nobody reads this key", known_keys)
        return found

    def json_object(self, text: str, *, where: str) -> dict[str, object] | None:
        """The object in `text`; None where it is none, with the place of the mistake."""
        try:
            return bodies.parse_object(text, where=where)
        except InputError as error:
            self.error("bad-json", where, error.what, _hint(text))
            return None

    def judge_code(self, told: object, wanted: str, *, where: str) -> None:
        """The verdict on a CheckCode."""
        if told == wanted:
            self.check_code = CheckCode.FITS
            return
        self.check_code = CheckCode.MISMATCH if told else CheckCode.ABSENT
        what = f"CheckCode is {_short(told)}, the content asks for {wanted}" if told else "has no CheckCode"
        advice = (
            "readers drop it and keep the last good one; never edit the value by hand, let its writer write"
        )
        self.error("check-code", where, what, advice)

    def _add(self, weight: Weight, code: str, where: str, what: str, advice: str) -> None:
        remark = Remark(weight, code, where, what, advice, line=self._line(where))
        if remark not in self._remarks and len(self._remarks) < MAX_REMARKS:
            self._remarks.append(remark)

    def _line(self, where: str) -> int:
        """Of a key of `data`, else of what is named by plain words."""
        for key in self.subject.data:
            if where == f"data.{key}" or where.startswith((f"data.{key}.", f"data.{key}[", f"data.{key}:")):
                return self.subject.places.line(("data", key))
        return self.subject.places.line(tuple(where.split(".")))


def _hint(text: str) -> str:
    """What is at the place where JSON breaks, where we can name it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].lstrip()
        line = text.splitlines()[error.lineno - 1][:80].strip() if text else ""
        if rest.startswith(COMMENTS):
            return f"line {error.lineno} holds a comment; JSON has none, remove it: {line}"
        return f"see line {error.lineno}: {line}" if line else "give a JSON object"
    except (ValueError, RecursionError):
        return ""
    return ""


def _short(value: object) -> str:
    return f"{value[:70]}" if isinstance(value, str) else "no string"


def as_mapping(value: object) -> Mapping[str, object]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
