"""`mindx-dl-fault-config` and `mindx-dl-node-fault-config`: level tables that a cluster made its own.

Source: fault input contract §2.3-2.5.
"""

from __future__ import annotations

from mindie_ha.intake import fault_configs
from mindie_ha.intake.lints.notebooks import Notebook
from mindie_ha.intake.lints.remarks import Sheet
from mindie_ha.intake.lints.subjects import Subject

KEY_POLL = "PollInterval"
POLL_S = range(30, 3601)
CHIP_KEYS = (fault_configs.KEY_CHIP, fault_configs.KEY_SWITCH, fault_configs.KEY_RULES, KEY_POLL)
NODE_KEYS = (fault_configs.KEY_NODE,)


def knows(subject: Subject) -> bool:
    """Whether it is one of the two."""
    names = (fault_configs.CHIP_CONFIG, fault_configs.NODE_CONFIG)
    return subject.kind == "ConfigMap" and subject.name in names


def look(subject: Subject) -> Sheet:
    """Every table."""
    book = Notebook(subject, rule="level tables")
    last = fault_configs.shipped()
    if subject.name == fault_configs.CHIP_CONFIG:
        book.belongs(namespace=fault_configs.CHIP_NAMESPACE, label="", writer="")
        data = book.texts(CHIP_KEYS)
        found = fault_configs.chip_config(data, last=last)
        poll = data.get(KEY_POLL, "30").strip()
        if not (poll.isascii() and poll.isdecimal() and len(poll) < 6 and int(poll) in POLL_S):
            book.warn("bad-poll", f"data.{KEY_POLL}", f"{poll[:20]!r} is not 30-3600 s", "300 s is used")
    else:
        book.belongs(namespace=fault_configs.NODE_NAMESPACE, label="", writer="")
        found = fault_configs.node_config(book.texts(NODE_KEYS), last=last)
    for error in found.refused:
        advice = error.advice or "the last good table stays; the device plugin falls back to its own"
        book.error("bad-table", error.where, error.what, advice)
    for finding in (
        () if found.refused else found.findings
    ):  # else those of the last good tables are among them
        book.warn("odd-table", "data", finding)
    if not found.refused:
        tables = found.tables
        sizes = len(tables.chip.chip), len(tables.switch.levels), len(tables.node.levels)
        book.means("levels of {} chip, {} switch and {} node codes".format(*sizes))
    return book.sheet()
