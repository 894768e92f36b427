"""`mindie-ha run`: the controller."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.app import serve
from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.sources import run_async, some_cluster


class Level(StrEnum):
    """What `--log-level` takes."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def run(
    *,
    config: Annotated[Path | None, typer.Option(help="YAML file; see docs/settings.md")] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="without it: $KUBECONFIG, else the pod's service account")
    ] = None,
    grpc_listen: Annotated[str, typer.Option(help="[HOST]:PORT, default :8899")] = "",
    http_listen: Annotated[str, typer.Option(help="[HOST]:PORT, default :8080")] = "",
    webhook: Annotated[bool, typer.Option("--webhook", help="serve the validating webhook, too")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="decide, record, write nothing")] = False,
    audit_file: Annotated[Path | None, typer.Option(help="append every decision as a JSON line")] = None,
    log_level: Annotated[Level, typer.Option(help="the least that is logged")] = Level.INFO,
) -> None:
    """Run the controller until it is told to stop."""
    flags: dict[str, Any] = {}
    if grpc_listen:
        flags["grpc"] = {"listen": grpc_listen}
    if http_listen:
        flags["http"] = {"listen": http_listen}
    if webhook:
        flags["webhook"] = {"enabled": True}
    if dry_run:
        flags["dry_run"] = True
    settings = load_settings(config, flags=flags)
    some_cluster(kubeconfig, advice="give --kubeconfig FILE")
    run_async(serve(settings, kubeconfig=kubeconfig, audit_file=audit_file, log_level=log_level))
