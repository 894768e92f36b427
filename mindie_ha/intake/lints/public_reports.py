"""A ConfigMap that reports public faults: the message in it, by the documented checks.

The codes and reporters are the documented defaults; a cluster may have its own table, and a serial number is
only known to the cluster: both are said where they matter.

Source: fault input contract §3.1-3.3; vectors V52-V61.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from mindie_ha.intake import public_codes, public_messages
from mindie_ha.intake.lints.notebooks import Notebook
from mindie_ha.intake.lints.remarks import Sheet
from mindie_ha.intake.lints.subjects import Subject

LABEL = "mc-consumer-publicfault"
KEY = "PublicFault"


class AnySerial(Mapping[str, str]):
    """Serial numbers of a cluster that is not at hand: each is taken for granted."""

    def __getitem__(self, serial: str) -> str:
        return f"the node with serial number {serial[:64]}"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def knows(subject: Subject) -> bool:
    """Whether it reports public faults, by label or key."""
    return subject.kind == "ConfigMap" and (LABEL in subject.labels or KEY in subject.data)


def look(subject: Subject) -> Sheet:
    """The message."""
    book = Notebook(subject, rule="public fault")
    book.belongs(namespace="", label=LABEL, writer="every reporter")
    data = book.texts((KEY,))
    if KEY not in data:
        book.error("no-message", "data", f"has no key {KEY}", "the message stands there as JSON")
        return book.sheet()
    where = f"data.{KEY}"
    body = book.json_object(data[KEY], where=where)
    if body is None:
        return book.sheet()
    with book.reading("bad-message"):
        message = public_messages.read(body, codes=shipped_codes(), serials=AnySerial(), where=where)
        for error in message.left_out:
            advice = error.advice or "this fault is left out, the others count"
            book.error("bad-fault", error.where, error.what, advice)
        for fault in message.faults:
            for influence in fault.influences:
                cards = ", ".join(map(str, influence.devices))
                what = f"{fault.code} ({fault.level}) on cards {cards} of {influence.node}"
                book.means(f"{fault.assertion} of {fault.fault_id}: {what}")
    return book.sheet()


@cache
def shipped_codes() -> public_codes.PublicCodes:
    """The documented defaults."""
    text = files("mindie_ha.intake").joinpath("data/public_codes.json").read_text(encoding="utf-8")
    return public_codes.parse(text, where="public_codes.json")
