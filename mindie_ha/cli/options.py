"""Options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindie_ha.cli.output import Format

ServerOption = Annotated[
    str, typer.Option("--server", help="URL of a running controller, for example http://127.0.0.1:8080")
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="ask the cluster itself with this kubeconfig, or $KUBECONFIG"),
]
TokenOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        envvar="MINDIE_HA_TOKEN_FILE",
        help="with --server: a file with a bearer token, or a kubeconfig that has one",
    ),
]
OutputOption = Annotated[Format, typer.Option("-o", "--output", help="text, json or yaml")]
