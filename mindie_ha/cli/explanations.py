"""`mindie-ha why`, `plan` and `history`: what a workload waits for, what would be done, what was done.

All three ask a running controller or the cluster itself. With a kubeconfig the ledgers speak: decisions
are known only to the controller that made them, and who subscribes or is active only to one that serves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from mindie_ha.app import explainer
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line, print_table
from mindie_ha.cli.resets import workload_key
from mindie_ha.cli.sources import ask, one_source, run_async, workload_path
from mindie_ha.cli.status import age, fault_words, workload_row
from mindie_ha.cli.tokens import Server
from mindie_ha.model.ids import ObjectKey
from mindie_ha.web.explanations import Explainer, HistoryReport, PlanReport, WhyReport

WorkloadArgument = Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="name of the workload")]
OneWorkload = Annotated[str, typer.Argument(metavar="[NAMESPACE/NAME]", help="only this workload")]


def why(
    *,
    workload: WorkloadArgument,
    limit: Annotated[int, typer.Option("--limit", min=0, help="newest decisions shown")] = 50,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Tell why a workload is as it is: state, what it waits for and until when, every decision in order."""
    key = workload_key(workload)
    path = workload_path(key, f"why?limit={limit}")

    async def here(found: Explainer) -> WhyReport:
        return await found.why(key, limit=limit)

    found = run_async(_asked(path, here, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    for line in why_lines(found):
        print_line(line)


def plan(
    *,
    workload: OneWorkload = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Show what would be done now, without doing it. Healthy workloads are counted, not listed."""
    key = workload_key(workload) if workload else None

    async def here(found: Explainer) -> PlanReport:
        return await found.plan(key)

    path = f"/v1/plan{_query(key)}"
    found = run_async(_asked(path, here, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    for line in plan_lines(found, everything=key is not None):
        print_line(line)


def history(
    *,
    workload: OneWorkload = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """List recoveries that are over, newest first, as the ledgers keep them (the newest five a workload)."""
    key = workload_key(workload) if workload else None

    async def here(found: Explainer) -> HistoryReport:
        return await found.history(key)

    path = f"/v1/history{_query(key)}"
    found = run_async(_asked(path, here, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
    elif not found["recoveries"]:
        print_line(f"no recovery{f' of {key}' if key else ''} is over yet")
    else:
        columns = ("CLOSED", "WORKLOAD", "EPOCH", "CAUSE", "RUNGS", "OUTCOME", "TOOK", "SUMMARY")
        print_table(columns, [history_row(one) for one in found["recoveries"]])


async def _asked(path: str, here: Any, server: str, kubeconfig: Path | None) -> dict[str, Any]:
    """The answer of a controller, or of the caches that this command fills, as plain data."""
    one_source(server, kubeconfig)
    if server:
        return await ask(server, path)
    async with explainer(load_settings(), kubeconfig=kubeconfig) as desk:
        report = await here(desk)
    found: dict[str, Any] = report.model_dump(mode="json")
    return found


def why_lines(found: dict[str, Any]) -> Iterator[str]:
    """One workload for people."""
    report, waits = found["report"], found["waits_for"]
    _, _, _, ready, nodes, *_ = workload_row(report)
    yield f"{found['workload']} ({report['role']}): {report['state']}, {ready} ready on {nodes}"
    yield f"now: {report['sentence']}"
    for fault in report["faults"]:
        yield f"{'fault' if fault['acts'] else 'noted'}: {fault_words(fault)}"
    if waits is None:
        yield "waits for: nothing"
    else:
        yield f"waits for: {waits['what']}"
        if waits["until_s"] is not None:
            left = max(0, int(waits["until_s"] - time.time()))
            yield f"until: {when(waits['until_s'])}, in {left} s" + (
                f"; then {waits['then']}" if waits["then"] else ""
            )
        yield f"ends with: {waits['ends']}"
    for notice in report["notices"]:
        yield f"told: {notice.removeprefix(found['workload'] + ': ')}"
    yield from _decision_lines(found)
    for past in found["closed"]:
        yield f"before: #{past['epoch']} {past['cause']}, {past['outcome']} after {past['took_s']:g} s"


def _decision_lines(found: dict[str, Any]) -> Iterator[str]:
    if found["decisions"] is None:
        yield "decisions: only a running controller (--server) has them; from the ledger:"
        for step in found["steps"]:
            end = f"{step['end_s'] - step['start_s']:.1f} s, {step['exit']}" if step["end_s"] else "now"
            yield f"  {when(step['start_s'])} #{step['epoch']} {step['rung']}/{step['phase']}: {end}"
        return
    yield f"decisions: {len(found['decisions'])}, newest last"
    for one in found["decisions"]:
        yield f"  {when(one['at_s'])} {one['rule']}: {one['sentence']}"
        for action in one["actions"]:
            yield f"    does: {action}"
        for notice in one["notices"]:
            yield f"    tells: {notice['reason']}: {notice['message']}"


def plan_lines(found: dict[str, Any], *, everything: bool) -> Iterator[str]:
    """The plan for people; `everything`: what would do nothing, too."""
    quiet = 0
    for each in (*found["workloads"], *found["tables"], *found["nodes"]):
        calm = not (each["actions"] or each["records"] or each["outcome"])
        if calm and not everything:
            quiet += 1
            continue
        yield f"{each['subject']}: {each['rule']}: {each['sentence']}"
        if each["records"]:
            yield "  would record it first"
        for action in each["actions"]:
            yield f"  would {action}"
        for notice in each["notices"]:
            yield f"  would tell: {notice}"
        if each["look_again_s"] is not None:
            yield f"  looks again at {when(each['look_again_s'])}"
    if not everything:
        yield f"nothing to do for {quiet} others" if quiet else "nothing else"


def history_row(past: dict[str, Any]) -> tuple[str, ...]:
    """One closed recovery as a row."""
    return (
        f"{age(past['closed_at_s'])} ago",
        past["workload"],
        f"#{past['epoch']}",
        past["cause"],
        ",".join(past["rungs"]) or "-",
        past["outcome"],
        f"{past['took_s']:.1f} s",
        past["summary"],
    )


def when(at_s: float) -> str:
    """A wall time as people read it, in their own zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def _query(key: ObjectKey | None) -> str:
    return f"?workload={quote(str(key), safe='')}" if key is not None else ""
