"""How results are printed: tables for people, JSON or YAML for machines; one line for an error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum

import orjson
import yaml
from rich.console import Console
from rich.table import Table


class Format(StrEnum):
    """What `-o` takes."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def print_document(document: object, form: Format) -> None:
    """Print plain data as JSON or YAML on stdout."""
    if form is Format.YAML:
        sys.stdout.write(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    else:
        sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Print a table on stdout; without a terminal it is plain and never cut."""
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_line(text: str) -> None:
    """Print one plain line on stdout."""
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"mindie-ha: {text}\n")
