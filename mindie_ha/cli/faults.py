"""`mindie-ha faults`: every current fault of the fleet, where it was read, and whom it hits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from mindie_ha.app import observe_faults
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.cli.sources import ask, one_source, run_async
from mindie_ha.cli.status import age
from mindie_ha.cli.tokens import Server


def faults(
    node: Annotated[str, typer.Option("--node", help="only this node")] = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Show every current fault: where it was read, codes, levels, since when, and what it does to whom."""
    found = run_async(gather(node, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    for fault in found["faults"]:
        for line in lines(fault):
            print_line(line)
    for each in found["unreported"]:
        print_line(f"{each['node']}: cards are not reported: {each['why']}")
    if not found["faults"] and not found["unreported"]:
        print_line(f"no fault{f' on {node}' if node else ''}")


async def gather(node: str, server: str, kubeconfig: Path | None) -> dict[str, Any]:
    """The faults as plain data."""
    one_source(server, kubeconfig)
    if server:
        path = f"/v1/faults?node={quote(node, safe='')}" if node else "/v1/faults"
        return await ask(server, path)
    fleet = await observe_faults(load_settings(), node=node, kubeconfig=kubeconfig)
    return fleet.model_dump(mode="json")


def lines(fault: dict[str, Any]) -> Iterator[str]:
    """One fault for people."""
    place = " ".join(filter(None, (fault["node"], fault["device"]))) or "no node"
    codes = ", ".join(code_words(fault)) or fault["level"]
    what = f"{fault['cause']} ({codes})" if codes else fault["cause"]
    since = f", for {age(fault['first_seen_s'])}" if fault["first_seen_s"] else ""
    why = f", {fault['why']}" if fault["why"] else ""
    yield f"{place}: {what}{since}: {fault['effect']}{why}"
    yield f"  read from: {fault['evidence']}"
    for hit in fault["hits"]:
        yield f"  hits: {hit['workload']}, pod {hit['pod']}: {effect_words(hit)}"


def code_words(fault: dict[str, Any]) -> Iterator[str]:
    """Each code with its own level."""
    for fact in fault["details"]:
        words = " ".join(filter(None, (fact["code"], fact["level"], fact["part"])))
        if words:
            yield words
    if not fault["details"]:
        yield from fault["codes"]


def effect_words(hit: dict[str, Any]) -> str:
    """What the fault does to one pod."""
    why = f": {hit['why']}" if hit["why"] else ""
    if hit["effect"] == "later" and hit["acts_at_s"] is not None:
        return f"silent for {max(0, int(hit['acts_at_s'] - time.time()))} s more{why}"
    return "acts" if hit["effect"] == "acts" else f"recorded only{why}"
