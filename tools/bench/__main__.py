"""`python -m tools.bench`: measure event-to-action times on the embedded cluster, on wall time.

    --runs N          recoveries, each with one run of the floor (default 50)
    --only FIGURE     recoveries, decisions, startup or reports; may be repeated (default: all)
    -o json           for machines

Nothing here passes or fails: a time depends on the machine. What can be compared is the ratio to the floor of
the same run. docs/performance.md explains each figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tools.bench import decisions, device_reports, recoveries, startups
from tools.bench.reports import Results, document, print_tables

FIGURES = ("recoveries", "decisions", "startup", "reports")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="recoveries, each with a run of the floor")
    parser.add_argument("--only", action="append", choices=FIGURES, help="measure only this; repeatable")
    parser.add_argument("--services", default="1,10,100,300", help="sizes for the cost of a decision")
    parser.add_argument("--decision-runs", type=int, default=200)
    parser.add_argument("--startup-runs", type=int, default=5)
    parser.add_argument("--pods", type=int, default=2000, help="of the fleet that a start reads")
    parser.add_argument("--nodes", type=int, default=500, help="of the fleet that a start reads")
    parser.add_argument("--reports", type=int, default=10_000, help="device reports read at a start")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser.parse_args(arguments)


async def measure(chosen: argparse.Namespace, directory: Path) -> Results:
    """Everything that was asked for, one after another."""
    wanted = chosen.only or FIGURES
    sizes = tuple(int(size) for size in chosen.services.split(","))
    fleet = startups.Size(chosen.pods, chosen.nodes)
    return Results(
        recoveries=await recoveries.measure(runs=chosen.runs, directory=directory, progress=_tell)
        if "recoveries" in wanted
        else None,
        decisions=await decisions.measure(sizes=sizes, runs=chosen.decision_runs, progress=_tell)
        if "decisions" in wanted
        else None,
        startup=await startups.measure(
            size=fleet, runs=chosen.startup_runs, directory=directory, progress=_tell
        )
        if "startup" in wanted
        else None,
        reports=await device_reports.measure(count=chosen.reports, runs=chosen.startup_runs, progress=_tell)
        if "reports" in wanted
        else None,
    )


def main() -> None:
    """Measure and print."""
    chosen = parse()
    with tempfile.TemporaryDirectory(prefix="mindie-ha-bench-") as directory:
        found = document(asyncio.run(measure(chosen, Path(directory))))
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    if chosen.output == "json":
        print(json.dumps(found, indent=2))
    else:
        print_tables(found)


def _tell(what: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what}")


if __name__ == "__main__":
    main()
