"""`mindx-dl-nodeinfo-<node>` of NodeD: its content and whether the checksum fits.

Source: fault input contract §1.4, §1.7, §2.5; vectors V05, V07, V10, V45-V51.
"""

from __future__ import annotations

from mindie_ha.intake import bodies, code_tables, node_info
from mindie_ha.intake.lints.notebooks import Notebook
from mindie_ha.intake.lints.remarks import CheckCode, Sheet
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.intake.stamps import rfc3339
from mindie_ha.model.levels import Level, parse_level

NAMESPACE = "mindx-dl"
LABEL = "mx-consumer-cim"
STATUSES = ("", "Healthy", "PreSeparate", "UnHealthy")


def knows(subject: Subject) -> bool:
    """Whether it is a report of NodeD."""
    return subject.kind == "ConfigMap" and subject.name.startswith(node_info.CONFIG_MAP_PREFIX)


def look(subject: Subject) -> Sheet:
    """Every key."""
    book = Notebook(subject, rule="node report")
    node = subject.name.removeprefix(node_info.CONFIG_MAP_PREFIX)
    if not node:
        book.error("no-node", "metadata.name", "names no node", "mindx-dl-nodeinfo-<node>")
    book.belongs(namespace=NAMESPACE, label=LABEL, writer="NodeD")
    data = book.texts((node_info.KEY, node_info.KEY_UPDATED))
    told = data.get(node_info.KEY_UPDATED, "")
    if told and not rfc3339(told):
        book.warn("no-time", f"data.{node_info.KEY_UPDATED}", f"{told[:40]!r} is no time", "RFC 3339")
    book.check_code = CheckCode.UNKNOWN
    if node_info.KEY not in data:
        book.error("no-report", "data", f"has no key {node_info.KEY}", "NodeD writes it")
        return book.sheet()
    where = f"data.{node_info.KEY}"
    root = book.json_object(data[node_info.KEY], where=where)
    if root is not None:
        with book.reading("bad-report"):
            _content(book, node, root, where=where)
    return book.sheet()


def _content(book: Notebook, node: str, root: dict[str, object], *, where: str) -> None:
    place = f"{where}.NodeInfo"
    info = bodies.as_object(root.get("NodeInfo"), where=place)
    devices, status = node_info.content(info, where=place)
    book.judge_code(root.get("CheckCode"), node_info.check_code(devices, status), where=where)
    if status not in STATUSES:
        book.warn("unknown-status", f"{place}.NodeStatus", f"{status[:40]!r} is no status", "see its writer")
    known = code_tables.defaults().node
    for number, device in enumerate(devices or ()):
        spot = f"{place}.FaultDevList[{number}]"
        if device.level and parse_level(device.level) is Level.UNKNOWN:
            book.warn("unknown-level", f"{spot}.FaultLevel", f"{device.level[:40]!r} is no level")
        for code in device.codes or ():
            if known.level(code) is Level.UNKNOWN:
                advice = "NodeD leaves such codes out; its own table may name it"
                book.note("unknown-code", f"{spot}.FaultCode", f"{code[:40]} is in no shipped table", advice)
    trouble = node_info.read(node, info, where=place, updated_at_s=0.0, now_s=0.0)
    book.means_faults(trouble.faults)
