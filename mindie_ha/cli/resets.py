"""`mindie-ha reset`: re-arm a parked workload, by a controller's API or by writing its ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.app import rearm_desk
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.isolations import user
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.cli.sources import ask, one_source, run_async, workload_path
from mindie_ha.cli.tokens import Server
from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.web.workloads import plain


def reset(
    *,
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="name of the workload")],
    reason: Annotated[str, typer.Option("--reason", help="why, in one line")] = "",
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Re-arm a parked workload: it is recovered again; software retries that were paid stay paid."""
    key = workload_key(workload)
    found = run_async(_reset(key, reason, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
    elif not found["changed"]:
        print_line(f"{key} is not parked; nothing was changed")
    else:
        park = found["parked"]
        print_line(f"{key} is re-armed; it was parked ({park['reason']}): {park['message']}")


def workload_key(text: str) -> ObjectKey:
    """The workload that a command line names. Raises InputError."""
    key = ObjectKey.parse(text)
    if not (key.namespace and key.name) or "/" in key.namespace:
        raise InputError(
            f"{text[:80]!r} is no NAMESPACE/NAME", where="command line", advice="see `mindie-ha status`"
        )
    return key


async def _reset(key: ObjectKey, reason: str, server: str, kubeconfig: Path | None) -> dict[str, Any]:
    one_source(server, kubeconfig)
    if not server:
        async with rearm_desk(load_settings(), kubeconfig=kubeconfig) as desk:
            return plain(await desk.reset(key, text=reason, person=user()))
    body = {"reason": reason, "person": user()}
    return await ask(server, workload_path(key, "reset"), method="POST", body=body)
