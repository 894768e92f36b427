"""`mindie-ha status`: how every service and job is, and why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from mindie_ha.app import observe
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line, print_table
from mindie_ha.cli.sources import ask, one_source, run_async
from mindie_ha.cli.tokens import Server
from mindie_ha.web.standing import API_SERVER, CONTROLLER


def status(
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Show every service and job: state, recoveries, faults, table.

    Exits 1 if any is parked, if what is shown is stale, or if nobody leads.
    """
    found = run_async(gather(Server.of(server, token_file), kubeconfig))
    services = found["services"]
    if output is not Format.TEXT:
        print_document(found, output)
    else:
        show(found)
    unattended = found.get("as_of_s") is not None or nobody_leads(found)
    if unattended or any(service["state"] == "parked" for service in services):
        raise typer.Exit(1)


async def gather(server: str, kubeconfig: Path | None) -> dict[str, Any]:
    """Reports of all scopes, and the objects that cannot be understood, as plain data."""
    one_source(server, kubeconfig)
    if server:
        return await ask(server, "/v1/services")
    overview = await observe(load_settings(), kubeconfig=kubeconfig)
    found = overview.model_dump(mode="json")
    for service in found["services"]:
        if service["table"] is not None:  # only a running controller knows who has it
            service["table"] |= {"subscribers": None, "handed_to_all": None}
        _without_streams(service)
    return found


def _without_streams(service: dict[str, Any]) -> None:
    """Which Controller is active follows from who subscribes, and nobody subscribes to a command."""
    for workload in service["workloads"]:
        for pod in workload["pods"] if workload["role"] == "controller" else ():
            why = "only a running controller (--server) knows who subscribes"
            pod |= {"ms_state": "unknown", "ms_reason": why, "ms_since_s": None}


def show(found: dict[str, Any]) -> None:
    """Everything for people."""
    first = headline(found)
    if first:
        print_line(first)
    for service in found["services"]:
        show_service(service)
    if not found["services"]:
        print_line("no service or job with MindIE labels was found")
    for each in found["isolated"]:
        print_line(isolated_line(each))
    for each in found["pauses"]:
        print_line(paused_line(each))
    note = found.get("leader_note", "")
    if found.get("role") != "dry-run":
        print_line(f"leader: {found.get('leader') or 'nobody'}{f' ({note})' if note else ''}")
    for each in found["problems"]:
        word = "problem" if each["object"] in (API_SERVER, CONTROLLER) else "not understood"
        print_line(f"{word}: {each['object']}: {each['problem']}")


def nobody_leads(found: dict[str, Any]) -> bool:
    """Whether a controller, or the Lease where the command looked itself, says that none of them leads."""
    asked = found.get("role") in ("leader", "standby") or bool(found.get("leader_note"))
    return asked and not found.get("leader")


def headline(found: dict[str, Any]) -> str:
    """What must be known before any row is believed; empty where all is as it should be."""
    said = []
    if found.get("as_of_s") is not None:
        at = time.strftime("%H:%M:%S", time.localtime(found["as_of_s"]))
        said.append(f"the API server does not answer (data as of {at})")
    if nobody_leads(found):
        said.append("nobody leads: nothing is done")
    elif found.get("role") == "standby":
        said.append(f"this replica is a standby and does nothing: {found['leader']} leads")
    elif found.get("role") == "dry-run":
        said.append("dry run: what would be done is recorded, and nothing is done")
    return "; ".join(said)


def isolated_line(isolated: dict[str, Any]) -> str:
    """One isolation for people."""
    what = f"{isolated['node']} {isolated['device']}".rstrip()
    why = isolated["text"] or isolated["reason"]
    healed_at_s = isolated.get("healed_since_s")
    healed = f", well again for {age(healed_at_s)}" if healed_at_s is not None else ""
    until = still(isolated["ends_at_s"], otherwise=f"until {isolated['until']}{healed}")
    return f"isolated: {what}: {why}, {until} (mindie-ha release {what.replace(' ', ' --device ')})"


def paused_line(pause: dict[str, Any]) -> str:
    """One pause for people."""
    until = still(pause["ends_at_s"], otherwise="until resumed")
    who = pause["person"].removeprefix("person:")
    return f"paused: {pause['scope']}: {pause['text']} (by {who}), {until} ({pause['undo']})"


def still(ends_at_s: float | None, *, otherwise: str) -> str:
    """For how long, or until when."""
    return f"for {max(0, int(ends_at_s - time.time()))} s more" if ends_at_s else otherwise


def show_service(service: dict[str, Any]) -> None:
    """One service for people."""
    print_line(f"{service['kind']} {service['namespace']}/{service['name']}: {service['state']}")
    columns = ("WORKLOAD", "ROLE", "STATE", "READY", "NODES", "RECOVERY", "PHASE SINCE", "CLOSED", "PAID")
    print_table(columns, [workload_row(each) for each in service["workloads"]])
    for line in remarks(service):
        print_line(f"  {line}")
    print_line("")


def workload_row(workload: dict[str, Any]) -> tuple[str, ...]:
    """One workload as a row."""
    pods = workload["pods"]
    ready = sum(1 for pod in pods if pod["ready"] and not pod["terminating"])
    recovery = workload["recovery"]
    role = workload["role"] if workload["role"] != "server" else workload["pd_role"]
    doing = f"#{recovery['epoch']} {recovery['rung']}/{recovery['phase']}" if recovery else "-"
    since = age(recovery["phase_since_s"]) if recovery else "-"
    nodes = ",".join(sorted({pod["node"] for pod in pods if pod["node"]}))
    counts = (str(workload["recoveries_closed"]), str(workload["software_retries_spent"]))
    ready_of_all = f"{ready}/{workload['replicas']}"
    return (workload["name"], role, workload["state"], ready_of_all, nodes or "-", doing, since, *counts)


def remarks(service: dict[str, Any]) -> Iterator[str]:
    """What a person should know beyond the rows: faults, conditions, notices, the table."""
    for workload in service["workloads"]:
        name = workload["name"]
        own = f"{service['namespace']}/{name}: "  # notices name their subject for Events and the log
        for fault in workload["faults"]:
            mark = "fault" if fault["acts"] else "noted"
            yield f"{mark}: {name}: {fault_words(fault)}"
        yield from role_lines(workload)
        recovery = workload["recovery"]
        if recovery:
            yield f"{name}: {recovery['summary']}"
            if not recovery["condition"]:
                yield f"{name}: {workload['sentence']}"
            else:
                yield f"{recovery['condition']}: {name}: {recovery['condition_message']}"
        untouched = workload["sentence"].startswith("observed")
        if (untouched or workload["state"] in ("parked", "held", "faulty")) and not workload["notices"]:
            yield f"{name}: {workload['sentence']}"
        for notice in workload["notices"]:
            yield f"{name}: {notice.removeprefix(own)}"
    yield from table_remarks(service["table"])


def role_lines(workload: dict[str, Any]) -> Iterator[str]:
    """Who of an MS workload is active, and how that is known; one line a pod."""
    for pod in workload["pods"]:
        if pod["ms_state"] and not pod["terminating"]:
            since = f" for {age(pod['ms_since_s'])}" if pod["ms_since_s"] else ""
            yield f"{pod['ms_state']}: {pod['name']}{since}: {pod['ms_reason']}"


def fault_words(fault: dict[str, Any]) -> str:
    """What is wrong, where, and from which object it was read."""
    place = " on ".join(each for each in (fault["device"], fault["node"]) if each)
    codes = ", ".join((*fault["codes"], *([fault["level"]] if fault["level"] else [])))
    what = " ".join(each for each in (fault["cause"], place, f"({codes})" if codes else "") if each)
    under = f" under pod {fault['pod']}" if fault["pod"] else ""
    return f"{what}{under}; {fault['evidence']}"


def table_remarks(table: dict[str, Any] | None) -> Iterator[str]:
    """The table in a few lines."""
    if table is None:
        return
    if not table["generation"]:
        yield f"table: none published yet. {table['sentence']}".rstrip()
    else:
        parts = [
            f"generation {table['generation']}",
            f"{table['servers']} servers",
            f"digest {table['digest'][:12]}",
            f"{age(table['published_at_s'])} old",
        ]
        if table["subscribers"] is not None:
            strange = table.get("strangers") or ()
            of_them = f" ({', '.join(strange[:3])}: no pod or node of it)" if strange else ""
            handed = "handed to all" if table["handed_to_all"] else "still being handed over"
            subscribed = f"subscribers by gRPC: {table['subscribers']}{of_them}, {handed}"
            parts.append(subscribed if table["subscribers"] else "nobody subscribed by gRPC")
        yield f"table: {', '.join(parts)}"
    for name, reasons in table["left_out"].items():
        yield f"left out of the table: {name}: {'; '.join(reasons)}"
    for name, until_s in table["held_until_s"].items():
        yield f"held back from the table: {name}, for at most {max(0, int(until_s - time.time()))} s more"
    for notice in table["notices"]:
        yield f"table: {notice}"


def age(since_s: float) -> str:
    """A duration as people write it."""
    seconds = max(0, int(time.time() - since_s))
    if seconds < 120:
        return f"{seconds}s"
    return f"{seconds // 60}m" if seconds < 7200 else f"{seconds // 3600}h"
