"""The story of a run, told as it happens: what was set up, what broke, what was done, and the verdict.

A line is a time of the cluster's clock, a word, and a plain sentence. The story is made from what the
journal sees, so it cannot tell of anything that did not happen. Colours only on a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mindie_ha.demo import observations as seen
from mindie_ha.demo.episodes import Episode, episodes
from mindie_ha.demo.journal import Event, Journal
from mindie_ha.demo.judging import Verdict
from mindie_ha.demo.scenarios import Scenario

STYLES = {
    "fault": "bold red",
    "recovery": "bold yellow",
    "isolated": "yellow",
    "released": "yellow",
    "deleted": "magenta",
    "new pod": "green",
    "ready": "green",
    "table": "cyan",
    "closed": "bold green",
    "parked": "bold red",
    "failed": "bold red",
}
PHASES = {
    "isolate": "new pods are kept away from what is broken",
    "stop": "the pods that have to go are deleted",
    "gone": "waiting until the old pods are gone",
    "recreate": "waiting for their owner to create the pods again",
    "place": "waiting for the gang scheduler to place all of them",
    "table": "waiting for the instance's own rank table to be complete",
    "rejoin": "waiting for the survivors to rejoin",
    "announce": "handing the new rank table to every subscriber",
    "settle": "watching that everything stays well",
    "backoff": "waiting before the next attempt",
}
TOLD_ANYWAY = frozenset({"RecoveryOpened", "RecoveryParked"})  # Events whose story the ledger tells
CHANNELS = {"configmap": "ConfigMap", "grpc": "gRPC", "http": "HTTP"}
WIDTH = 100


class Story:
    """Tells one run on a console. Attach it to a journal with `follow`."""

    def __init__(self, console: Console, *, speed: float) -> None:
        self._console = console
        self._speed = speed
        self._journal: Journal | None = None
        self._begun = False  # before the first fault only milestones are told
        self._phases: dict[str, tuple[int, str]] = {}  # workload -> epoch and phase told last
        self._arrived: set[tuple[str, str]] = set()  # peer and digest

    def follow(self, journal: Journal) -> None:
        """Tell what this journal sees from the first fault on."""
        self._journal = journal
        journal.listeners.append(self._on_event)

    # -- milestones, told by the stage -----------------------------------------------------------------

    def opening(self, scenario: Scenario) -> None:
        """What this is about and what will be set up."""
        self._console.print()
        self._write(Text.assemble((scenario.title, "bold"), f"   (scenario {scenario.name})"))
        for line in textwrap.wrap(" ".join(scenario.about.split()), WIDTH - 2):
            self._write(Text(line, style="dim"))
        self._console.print()
        cards = {"a2": "8 NPUs each (Atlas 800I A2)", "a3": "16 NPUs each, in super pods (Atlas 800I A3)"}
        self._fact("cluster", f"{scenario.cluster.nodes} servers with {cards[scenario.cluster.model]}")
        self._fact("service", _service(scenario))
        self._fact("time", f"{self._speed:g} times faster than life; times below are seconds of the cluster")
        self._console.print()

    def milestone(self, word: str, sentence: str) -> None:
        """One line of the stage itself."""
        self._say(self._now_s(), word, sentence)

    def broken(self, fault: seen.Injected) -> None:
        """A fault was set; from here on everything is told."""
        self._begun = True
        self._console.print()
        self._say(fault.at_s, "fault", _harm(fault))

    def closing(self, verdict: Verdict, observations: seen.Observations, *, took_s: float) -> None:
        """Pods before and after, the phases with their times, every rule, and the verdict."""
        self._console.print()
        self._console.print(_pod_table(observations))
        self._console.print()
        recoveries = episodes(observations)
        for episode in recoveries:
            self._write(
                Text.assemble((f"phases of {_short(episode.workload)}: ", "bold"), _durations(episode))
            )
        self._console.print()
        self._write(Text("judged by what was seen:", style="bold"))
        for check in verdict.checks:
            mark = Text("  kept    ", style="green") if check.kept else Text("  BROKEN  ", style="bold red")
            self._write(mark + Text(check.rule))
            for complaint in check.complaints[:8]:
                self._write(Text(f"          {complaint}", style="red"))
        self._console.print()
        self._write(_conclusion(verdict, recoveries, took_s))

    # -- what the journal sees -------------------------------------------------------------------------

    def _on_event(self, what: str, event: Event) -> None:
        if self._begun:
            self._tell(what, event)

    def _tell(self, what: str, event: Event) -> None:
        match event:
            case seen.PodLife():
                self._pod(what, event)
            case seen.LedgerSeen():
                self._ledger(event)
            case seen.NodeSeen():
                self._node(what, event)
            case seen.TableSeen():
                self._table(event)
            case seen.Delivery():
                self._delivery(event)
            case seen.InstanceTableSeen():
                self._say(event.at_s, "complete", f"the rank table of {_short(event.workload)} is complete")
            case seen.EventSeen(warning=True, reason=reason) if reason not in TOLD_ANYWAY:
                self._say(self._now_s(), "told", f"Event {event.reason}: {event.message}")
            case seen.JobSeen():
                self._say(self._now_s(), "failed", f"AscendJob {event.key} is given up: {event.failed}")

    def _pod(self, what: str, pod: seen.PodLife) -> None:
        cards = f", {len(pod.devices)} NPUs" if pod.devices else ""
        lines = {
            "deleted": ("deleted", f"pod {pod.name} on {pod.node or 'no node'}"),
            "running": ("new pod", f"{pod.name} runs on {pod.node}{cards}"),
            "ready": ("ready", f"pod {pod.name} on {pod.node}"),
            "unready": ("unready", f"pod {pod.name} on {pod.node}"),
            "failed": ("ended", f"pod {pod.name} on {pod.node} is Failed"),
        }
        if what in lines:
            self._say(self._now_s(), *lines[what])

    def _ledger(self, ledger: seen.LedgerSeen) -> None:
        recovery = ledger.recovery
        told_epoch, told_phase = self._phases.get(ledger.workload, (0, ""))
        if recovery is None:
            if told_phase:
                self._closed(ledger)
            self._phases[ledger.workload] = told_epoch, ""
            return
        if recovery["epoch"] != told_epoch:
            opened = f"#{recovery['epoch']} of {_short(ledger.workload)}: {recovery['intent']['summary']}"
            self._say(ledger.at_s, "recovery", opened)
        if (recovery["epoch"], recovery["phase"]) != (told_epoch, told_phase):
            phase = recovery["phase"]
            self._say(ledger.at_s, phase, f"{_short(ledger.workload)}: {PHASES.get(phase, phase)}")
        self._phases[ledger.workload] = recovery["epoch"], recovery["phase"]

    def _closed(self, ledger: seen.LedgerSeen) -> None:
        parked = ledger.body.get("parked")
        if parked:
            self._say(ledger.at_s, "parked", f"{_short(ledger.workload)}: {parked['message']}")
            return
        closed = (ledger.body.get("closed") or [{}])[-1]
        lasted_s = closed.get("closed_at_s", 0.0) - closed.get("opened_at_s", 0.0)
        self._say(
            ledger.at_s,
            "closed",
            f"{_short(ledger.workload)} is {closed.get('outcome', 'closed')} after {lasted_s:.1f} s",
        )

    def _node(self, what: str, node: seen.NodeSeen) -> None:
        if what == "tainted":
            self._say(node.at_s, "isolated", f"{node.node} is tainted and gets no new pods")
        else:
            self._say(node.at_s, "released", f"our taint is off {node.node}")

    def _table(self, table: seen.TableSeen) -> None:
        groups = list(seen.server_groups(table.text))
        pods = sum(len(addresses) for _, addresses in groups)
        change = self._difference(table)
        self._say(
            table.at_s,
            "table",
            f"generation {table.generation}: {_count(len(groups), 'instance')}, {_count(pods, 'pod')}"
            f"{change}",
        )

    def _difference(self, table: seen.TableSeen) -> str:
        if self._journal is None:
            return ""
        everything = self._journal.observations
        earlier = [each for each in everything.tables if each.version < table.version]
        if not earlier:
            return ""
        before, after = everything.groups_of(earlier[-1].text), everything.groups_of(table.text)
        parts = [f"without {_short(name)}" for name in sorted(before.keys() - after.keys())]
        renewed = [name for name in after if name in before and before[name][1] != after[name][1]]
        parts += [
            f"with the new pods of {_short(name)}"
            for name in sorted({*(after.keys() - before.keys()), *renewed})
        ]
        return f" ({', '.join(parts)})" if parts else ""

    def _delivery(self, delivery: seen.Delivery) -> None:
        if (delivery.peer, delivery.digest) in self._arrived or self._journal is None:
            return
        self._arrived.add((delivery.peer, delivery.digest))
        number = self._journal.observations.generation_of(delivery.digest)
        self._say(
            delivery.at_s,
            "arrived",
            f"generation {number} by {CHANNELS[delivery.channel]} at {delivery.peer}",
        )

    # -- form --------------------------------------------------------------------------------------------

    def _now_s(self) -> float:
        return self._journal.now_s if self._journal is not None else 0.0

    def _say(self, at_s: float, word: str, sentence: str) -> None:
        style = STYLES.get(word, "")
        self._write(Text.assemble((f"{at_s:7.1f} s  ", "dim"), (f"{word:<9} ", style), sentence))

    def _fact(self, word: str, sentence: str) -> None:
        self._write(Text.assemble((f"  {word:<9}", "bold"), sentence))

    def _write(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)


def _harm(fault: seen.Injected) -> str:
    node, code, level = fault.node, fault.code, fault.level
    words = {
        seen.Harm.PROCESS: f"the process of {fault.pod} ends: {code}",
        seen.Harm.CARD: f"{fault.device} of {node} fails with {code} ({level})",
        seen.Harm.PUBLIC: f"{level} reports {code} of {fault.device} on {node}",
        seen.Harm.SWITCH: f"a switch in {node} reports {code} ({level})",
        seen.Harm.BOARD: f"the board of {node} reports {code} ({level})",
        seen.Harm.MARK: f"{node} is marked {code}",
        seen.Harm.NODE_DELETED: f"node {node} is deleted",
        seen.Harm.NODE_LOST: f"{node} is lost",
    }[fault.kind]
    runs = bool(fault.pod) and fault.kind is not seen.Harm.PROCESS
    return f"{words}; {fault.pod} runs on it" if runs else words


def _service(scenario: Scenario) -> str:
    jobs = seen.jobs_in(scenario.objects())
    ids = {each["metadata"].get("labels", {}).get("jobID") or each["metadata"]["name"] for each in jobs}
    return f"{', '.join(sorted(ids))}: {seen.counted_jobs(jobs)} of manifest {scenario.manifest}"


def _pod_table(observations: seen.Observations) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("POD", "BEFORE", "AFTER", ""):
        table.add_column(column, no_wrap=True)
    for row in _rows(observations):
        table.add_row(*row, style="" if row[-1] != "kept" else "dim")
    return table


def _rows(observations: seen.Observations) -> Iterator[tuple[str, ...]]:
    fault_s = observations.first_fault_s()
    before = {pod.key: pod for pod in observations.pods.values() if pod.here_at(fault_s)}
    after = {pod.key: pod for pod in observations.pods.values() if pod.deleted_s is None}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None:
            change = "kept" if old.uid == new.uid else "replaced"
        else:
            change = "new" if new is not None else "gone"
        yield (_short(key), _place(old), _place(new), change)


def _place(pod: seen.PodLife | None) -> str:
    """Where a pod stands, and the beginning of its UID."""
    return f"{pod.node or 'no node'} {pod.uid[:8]}" if pod is not None else "-"


def _durations(episode: Episode) -> str:
    spent: dict[str, float] = {}
    for each in episode.phases:
        if each.end_s is not None:
            spent[each.phase] = spent.get(each.phase, 0.0) + each.end_s - each.start_s
    return ", ".join(f"{phase} {lasted_s:.1f} s" for phase, lasted_s in spent.items()) or "none"


def _conclusion(verdict: Verdict, recoveries: tuple[Episode, ...], took_s: float) -> Text:
    kept = sum(check.kept for check in verdict.checks)
    rules = f"{kept} of {len(verdict.checks)} rules kept"
    run = f"this run took {took_s:.1f} s"
    if not verdict.ok:
        return Text(f"NOT OK: {rules}; {run}", style="bold red")
    times = [each.closed_s - each.opened_s for each in recoveries if each.closed_s is not None]
    lasted = f", the longest in {max(times):.1f} s of the cluster" if times else ""
    return Text(f"OK: {_count(len(recoveries), 'recovery')}{lasted}; {rules}; {run}", style="bold green")


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def _short(key: str) -> str:
    return key.rpartition("/")[2]


__all__ = ["Story"]
