"""What was measured, as one document: for machines as JSON, for people as a table."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tools.bench.decisions import Cost
from tools.bench.device_reports import Reports
from tools.bench.recoveries import Timings
from tools.bench.samples import Summary, summary
from tools.bench.startups import Startup

TARGET_MS = 100.0


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured; None: not asked for."""

    recoveries: Timings | None
    decisions: list[Cost] | None
    startup: Startup | None
    reports: Reports | None = None


def document(results: Results) -> dict[str, Any]:
    """Everything as plain data; times in milliseconds."""
    found: dict[str, Any] = {"machine": machine()}
    if results.recoveries is not None:
        found["recoveries"] = _recoveries(results.recoveries)
    if results.decisions is not None:
        found["decisions"] = [
            {
                "services": cost.services,
                "take_in": asdict(summary(cost.take_in)),
                "view": asdict(summary(cost.view)),
                "plan": asdict(summary(cost.plan)),
                "total": asdict(summary(cost.total)),
            }
            for cost in results.decisions
        ]
    if results.startup is not None:
        startup = results.startup
        found["startup"] = {
            **asdict(startup.size),
            "sync": asdict(summary(startup.sync)),
            "longest_gap": asdict(summary(startup.longest_gap)),
        }
    if results.reports is not None:
        reports = results.reports
        found["reports"] = {
            "count": reports.count,
            "touched": reports.touched,
            "parsing": asdict(summary(reports.parsing)),
            "longest_gap": asdict(summary(reports.longest_gap)),
            "change": asdict(summary(reports.change)),
        }
    return found


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "load_1min": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def print_tables(found: dict[str, Any]) -> None:
    """For people."""
    console = Console(width=110)
    host = found["machine"]
    console.print(
        f"{host['cores']} cores ({host['cpu']}), load {host['load_1min']:.1f}, Python {host['python']}, "
        f"{host['system']}"
    )
    if "recoveries" in found:
        _print_recoveries(console, found["recoveries"])
    if "decisions" in found:
        _print_decisions(console, found["decisions"])
    if "startup" in found:
        _print_startup(console, found["startup"])
    if "reports" in found:
        _print_reports(console, found["reports"])


def _recoveries(timings: Timings) -> dict[str, Any]:
    floor = summary(timings.floor)
    figures = {
        "floor": timings.floor,
        "deletion": timings.deletion,
        "isolate_write": timings.own_writes,
        "deletion_beside_isolate_write": timings.beside_writes,
        "table": timings.table,
    }
    return {
        "target_p99_ms": TARGET_MS,
        "figures": {
            name: {
                **asdict(summary(seconds)),
                "p50_to_floor": summary(seconds).p50_ms / floor.p50_ms,
                "p99_to_floor": summary(seconds).p99_ms / floor.p99_ms,
            }
            for name, seconds in figures.items()
        },
        "requests_at_server": {
            name: asdict(summary(seconds)) for name, seconds in sorted(timings.requests.items())
        },
    }


def _print_recoveries(console: Console, found: dict[str, Any]) -> None:
    sentences = {
        "floor": "bare loop: ConfigMap written → DELETE received",
        "deletion": "fault written → DELETE received",
        "isolate_write": "  of it: the isolate phase's own write",
        "deletion_beside_isolate_write": "  of it: everything else",
        "table": "last hccl.json written → table at the gRPC client",
    }
    table = _table("from event to action (ms)", "runs", "P50", "P99", "max", "P50 / floor", "P99 / floor")
    for name, figure in found["figures"].items():
        ratios = (f"{figure['p50_to_floor']:.1f}", f"{figure['p99_to_floor']:.1f}")
        table.add_row(sentences[name], *_row(figure), *ratios)
    console.print(table)
    verdicts = [
        f"{what}: P99 {figure['p99_ms']:.1f} ms, target {found['target_p99_ms']:.0f} ms"
        for what, figure in (
            ("deletion beside the isolate write", found["figures"]["deletion_beside_isolate_write"]),
            ("table", found["figures"]["table"]),
        )
    ]
    console.print("; ".join(verdicts))
    inside = _table(
        "requests on the way to the deletion, inside the API server (ms)", "runs", "P50", "P99", "max"
    )
    for name, figure in found["requests_at_server"].items():
        inside.add_row(name, *_row(figure))
    console.print(inside)


def _print_decisions(console: Console, found: list[dict[str, Any]]) -> None:
    table = _table(
        "one event until its decision, CPU (ms)", "runs", "P50", "P99", "max", "take in", "view", "plan"
    )
    for cost in found:
        steps = (f"{cost[step]['p50_ms']:.2f}" for step in ("take_in", "view", "plan"))
        table.add_row(f"among {cost['services']} services", *_row(cost["total"]), *steps)
    console.print(table)


def _print_startup(console: Console, found: dict[str, Any]) -> None:
    title = f"start on {found['pods']} pods, {found['nodes']} nodes and their reports (ms)"
    table = _table(title, "runs", "P50", "P99", "max")
    table.add_row("caches filled after", *_row(found["sync"]))
    table.add_row("longest standstill of the loop", *_row(found["longest_gap"]))
    console.print(table)


def _print_reports(console: Console, found: dict[str, Any]) -> None:
    table = _table(f"{found['count']} device reports (ms)", "runs", "P50", "P99", "max")
    table.add_row("all read and judged after", *_row(found["parsing"]))
    table.add_row("longest standstill of the loop", *_row(found["longest_gap"]))
    table.add_row(f"one changed, touching {found['touched']} node, CPU", *_row(found["change"]))
    console.print(table)


def _table(title: str, *columns: str) -> Table:
    table = Table("", title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _row(figure: dict[str, float]) -> tuple[str, ...]:
    return (str(figure["runs"]), *(f"{figure[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms")))


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


__all__ = ["Results", "Summary", "document", "print_tables"]
