"""Metrics: one registry of our own, made by the program and handed down.

Every name starts with `mindie_ha_`; every label has few values (kinds, rungs, reasons), never a name of a
pod, node or job. The metrics of the house stand here in one place, so that documentation and dashboards can
be checked against them.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

PREFIX = "mindie_ha_"
_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


class MetricFactory:
    """Makes metrics in one registry, with the prefix of the house."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """A count that only grows."""
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """A value that goes up and down."""
        return Gauge(PREFIX + name, text, labels, registry=self.registry)

    def seconds(self, name: str, text: str, labels: Sequence[str] = ()) -> Histogram:
        """A distribution of durations in seconds."""
        return Histogram(PREFIX + name, text, labels, registry=self.registry, buckets=_SECONDS)

    def render(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self.registry)


class Metrics:
    """The metrics of the house."""

    def __init__(self, factory: MetricFactory | None = None) -> None:
        self.factory = made = factory or MetricFactory()
        self.task_crashes = made.counter("task_crashes_total", "Tasks that ended by a bug", ["task"])
        self.queue_depth = made.gauge("queue_depth", "Scopes due for a look")
        self.reconcile_s = made.seconds("reconcile_seconds", "Duration of one look", ["kind"])
        self.decisions = made.counter("decisions_total", "Decisions by rule", ["rule"])
        self.notices = made.counter("notices_total", "Notices by reason", ["reason"])
        self.recoveries = made.counter("recoveries_total", "Recoveries closed", ["role", "rung", "outcome"])
        self.recovery_s = made.seconds("recovery_seconds", "Duration of recoveries", ["role", "outcome"])
        self.inputs_refused = made.counter("inputs_refused_total", "Malformed input objects", ["source"])
        self.admissions = made.counter("admissions_total", "Answers of the webhook", ["answer"])
        self.informer_age_s = made.gauge("informer_age_seconds", "Since the API server was heard", ["source"])
        self.informer_lists = made.counter("informer_lists_total", "Full lists by cause", ["source", "cause"])
        self.informer_breaks = made.counter(
            "informer_breaks_total", "Watches that broke", ["source", "cause"]
        )
        self.lines_unparsable = made.counter(
            "watch_lines_unparsable_total", "Watch lines skipped", ["source"]
        )
        self.writes = made.counter("writes_total", "Writes by result", ["verb", "resource", "result"])
        self.write_s = made.seconds(
            "write_seconds", "Duration of writes, retries included", ["verb", "resource"]
        )
        self.events_dropped = made.counter("events_dropped_total", "Kubernetes Events not sent", ["cause"])
        self.workloads = made.gauge("workloads", "Workloads that recover, wait or are parked", ["state"])
        self.ledgers_unreadable = made.gauge("ledgers_unreadable", "Ledgers not readable", ["kind"])
        self.tables = made.counter("tables_total", "Rank tables by channel and result", ["channel", "result"])
        self.public_reports = made.counter(
            "public_reports_total", "Reports of public faults by entry and answer", ["entry", "answer"]
        )
        self.permission_missing = made.gauge("permission_missing", "1: we lack it", ["verb", "resource"])
        self.strange_peers = made.counter("strange_peers_total", "Subscribers of no known pod", ["result"])
        self.connections_cut = made.counter(
            "connections_cut_total", "Connections above the bounds of an address", ["server"]
        )
        self.tls_renewals = made.counter("tls_renewals_total", "Renewed certificate files", ["result"])
        self.role_questions = made.counter(
            "role_questions_total", "MS pods asked who is active, by answer", ["role", "answer"]
        )
        self.ms_pods = made.gauge("ms_pods", "MS pods by what they are", ["role", "activity"])
        self.subscribers = made.gauge("subscribers", "Open rank table streams")
        self.leader = made.gauge("leader", "1 while this process leads")
        self.lease_age_s = made.gauge("lease_age_seconds", "Since the Lease was last seen to change")


__all__ = ["PREFIX", "MetricFactory", "Metrics"]
