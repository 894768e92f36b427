"""`mindie-ha ranktable show|diff`: the published table of a service, or a table in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from mindie_ha.app import published_table
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line, print_table
from mindie_ha.cli.sources import fetch, one_source, run_async
from mindie_ha.cli.tokens import Server
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ranktables import (
    CONTROLLER_GROUP,
    COORDINATOR_GROUP,
    Device,
    Finding,
    GlobalTable,
    Severity,
    verdict,
)
from mindie_ha.ranktable.diff import Change, TableDiff, diff
from mindie_ha.ranktable.reading import Reading, read_global

app = typer.Typer(help="Look at rank tables.", no_args_is_help=True)
MS_GROUPS = {str(COORDINATOR_GROUP): "coordinator", str(CONTROLLER_GROUP): "controller"}
NAMED = "a FILE, or NAMESPACE/JOBID of a service"
Named = Annotated[str, typer.Argument(help=NAMED)]


@app.command()
def show(
    table: Named,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Show a table and what MS Controller would say to it. Exits 1 if it would be refused."""
    text = read(table, Server.of(server, token_file), kubeconfig)
    reading = read_global(text)
    if output is not Format.TEXT:
        findings = [
            {"severity": each.severity, "code": each.code, "where": each.where, "message": each.message}
            for each in reading.findings
        ]
        print_document({"source": table, "table": _plain(text), "findings": findings}, output)
    else:
        show_table(reading)
        for finding in reading.findings:
            print_line(sentence(finding))
    if verdict(reading.findings) is Severity.REJECT:
        raise typer.Exit(1)


@app.command("diff")
def difference(  # noqa: PLR0917 - a command: the command line gives them by name
    before: Named,
    after: Named,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Show what changed between two tables. Exits 1 if they differ."""
    at = Server.of(server, token_file)
    left, right = (readable(each, read(each, at, kubeconfig)) for each in (before, after))
    found = diff(left, right)
    lines = list(diff_lines(found))
    if output is not Format.TEXT:
        print_document({"before": before, "after": after, "equal": found.empty, "changes": lines}, output)
    else:
        for line in lines or ["no difference"]:
            print_line(line)
    if not found.empty:
        raise typer.Exit(1)


def read(name: str, server: str, kubeconfig: Path | None) -> str:
    """The text of a table from a file, a controller or the cluster."""
    path = Path(name)
    if path.is_file():
        try:
            return unwrapped(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=name) from None
        except UnicodeDecodeError:
            raise InputError("is not UTF-8 text", where=name) from None
    key = ObjectKey.parse(name)
    if not key.namespace:
        raise InputError("neither a file nor NAMESPACE/JOBID", where=name, advice=f"give {NAMED}")
    one_source(server, kubeconfig)
    if server:
        body, _ = run_async(fetch(server, f"/v1/services/{key.namespace}/{key.name}/ranktable"))
        return body.decode()
    return run_async(published_table(load_settings(), key, kubeconfig=kubeconfig))


def readable(name: str, text: str) -> GlobalTable:
    """The table in a text. Raises InputError where there is none: nothing can be said about a difference."""
    reading = read_global(text)
    if reading.table is None:
        raise InputError(f"is not a rank table: {reading.findings[0].message}", where=name)
    if not {"status", "server_group_list"} & _plain(text).keys():  # reading is patient with absent fields
        raise InputError("is not a rank table: neither status nor server_group_list is there", where=name)
    return reading.table


def unwrapped(text: str) -> str:
    """The table of a file that `show -o json` wrote; every other text as it is."""
    document = _plain(text)
    if isinstance(document, dict) and {"source", "table", "findings"} <= document.keys():
        return orjson.dumps(document["table"]).decode()
    return text


def show_table(reading: Reading) -> None:
    """The table's groups for people."""
    if reading.table is None:
        return
    rows = [
        (
            group.group_id,
            MS_GROUPS.get(group.group_id, "server"),
            group.deploy_server or "-",
            server.server_id,
            server.server_ip,
            str(len(server.devices)),
        )
        for group in reading.table.groups
        for server in group.servers
    ]
    print_table(("GROUP", "ROLE", "DEPLOY", "HOST", "POD IP", "NPUS"), rows)


def sentence(finding: Finding) -> str:
    """One finding in one line."""
    return f"{finding.severity}: {finding.where}: {finding.message} [{finding.code}]"


def diff_lines(found: TableDiff) -> Iterator[str]:
    """The difference, a line each, outermost first."""
    signs = {Change.ADDED: "+", Change.REMOVED: "-", Change.CHANGED: "~"}
    for group in found.groups:
        fields = f" ({', '.join(group.fields)})" if group.fields else ""
        yield f"{signs[group.change]} group {group.group_id}{fields}"
        for server in group.servers:
            yield f"  {signs[server.change]} server {server.server_ip}"
            for device in server.devices:
                cards = f"{card(device.before)} -> {card(device.after)}"
                yield f"    {signs[device.change]} rank {device.rank_id}: {cards}"


def card(device: Device | None) -> str:
    """One card in a few words."""
    return f"card {device.device_id} ({device.device_ip})" if device is not None else "none"


def _plain(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
