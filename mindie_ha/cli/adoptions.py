"""`mindie-ha adopt`: hand a job to mindie-ha, by a controller's API or by labelling it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.app import adoption_desk
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.isolations import user
from mindie_ha.cli.options import KubeconfigOption, OutputOption, ServerOption, TokenOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.cli.resets import workload_key
from mindie_ha.cli.sources import ask, one_source, run_async, workload_path
from mindie_ha.cli.tokens import Server
from mindie_ha.model.ids import ObjectKey
from mindie_ha.policy.ownership import Mode
from mindie_ha.web.adoptions import plain


def adopt(
    *,
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="name of the job")],
    mode: Annotated[
        Mode | None, typer.Option(help="how pods are deleted; without it: as labelled, else force")
    ] = None,
    pod_rescheduling: Annotated[
        bool, typer.Option("--pod-rescheduling", help="replace only failed pods first (not for servers)")
    ] = False,
    server: ServerOption = "",
    token_file: TokenOption = None,
    kubeconfig: KubeconfigOption = None,
    output: OutputOption = Format.TEXT,
) -> None:
    """Label a job so that its faults are answered here; says what was changed and what holds now."""
    key = workload_key(workload)
    wish = {"mode": mode.value if mode is not None else "", "pod_rescheduling": pod_rescheduling}
    found = run_async(_adopt(key, wish, Server.of(server, token_file), kubeconfig))
    if output is not Format.TEXT:
        print_document(found, output)
        return
    print_line(
        f"{key} is labelled" if found["changed"] else f"{key} is labelled so already; nothing was changed"
    )
    for line in found["says"]:
        print_line(f"  {line}")


async def _adopt(
    key: ObjectKey, wish: dict[str, Any], server: str, kubeconfig: Path | None
) -> dict[str, Any]:
    one_source(server, kubeconfig)
    if not server:
        async with adoption_desk(load_settings(), kubeconfig=kubeconfig) as desk:
            return plain(await desk.adopt(key, **wish, person=user()))
    body = {**wish, "person": user()}
    return await ask(server, workload_path(key, "adopt"), method="POST", body=body)
