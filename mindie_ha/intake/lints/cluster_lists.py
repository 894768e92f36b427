"""`cluster-info-device-<i>`, `-switch-<i>` and `-node-cm` of ClusterD: what the scheduler reads.

Source: fault input contract §1.8, §8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindie_ha.intake import cluster_infos, code_tables
from mindie_ha.intake.lints.notebooks import Notebook
from mindie_ha.intake.lints.remarks import Sheet
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.model.errors import InputError
from mindie_ha.model.faults import Fault

NAMESPACE = "mindx-dl"
LABEL = "mx-consumer-volcano"
DEVICE_MAPS = "cluster-info-device-"


def knows(subject: Subject) -> bool:
    """Whether it is one of ClusterD's lists."""
    prefixes = (DEVICE_MAPS, cluster_infos.SWITCH_MAPS)
    listed = subject.name.startswith(prefixes) or subject.name == cluster_infos.NODE_MAP
    return subject.kind == "ConfigMap" and listed


def look(subject: Subject) -> Sheet:
    """Its one key."""
    book = Notebook(subject, rule="ClusterD list")
    book.belongs(namespace=NAMESPACE, label=LABEL, writer="ClusterD")
    data = book.texts((subject.name,))
    if subject.name not in data:
        book.error("no-list", "data", f"has no key {subject.name}", "ClusterD names the key as the ConfigMap")
        return book.sheet()
    text, where, tables = data[subject.name], f"data.{subject.name}", code_tables.defaults()
    if not text.strip():
        book.means("an empty list: nobody is bad, or ClusterD needs this part no more")
        return book.sheet()
    if book.json_object(text, where=where) is None:
        return book.sheet()
    with book.reading("bad-list"):
        if subject.name.startswith(DEVICE_MAPS):
            devices = cluster_infos.devices(text, where=where, now_s=0.0, tables=tables)
            _say(book, devices.refused, devices.findings, len(devices.nodes))
            _faults(book, (fault for info in devices.nodes.values() for fault in info.faults))
        elif subject.name.startswith(cluster_infos.SWITCH_MAPS):
            switches = cluster_infos.switches(text, where=where, now_s=0.0, tables=tables)
            _say(book, switches.refused, switches.findings, len(switches.nodes))
            _faults(book, (fault for one in switches.nodes.values() if one for fault in one.faults))
        else:
            boards = cluster_infos.boards(text, where=where, now_s=0.0, tables=tables)
            _say(book, boards.refused, boards.findings, len(boards.nodes))
            _faults(book, (fault for one in boards.nodes.values() for fault in one.faults))
    return book.sheet()


def _say(book: Notebook, refused: Sequence[InputError], findings: Sequence[str], nodes: int) -> None:
    for error in refused:
        book.error("bad-entry", error.where, error.what, error.advice or "only this node is affected")
    for finding in findings:
        book.warn("odd-entry", "data", finding)
    book.means(f"{nodes} nodes")


def _faults(book: Notebook, faults: Iterable[Fault]) -> None:
    for fault in faults:
        place = f"{fault.device} on {fault.node}" if fault.device else fault.node
        codes = f" ({', '.join(fault.codes[:8])})" if fault.codes else ""
        book.means(f"{fault.cause}: {place}{codes}")
