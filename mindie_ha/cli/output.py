"""How results are printed: tables for people, JSON or YAML for machines; one line for an error."""

from __future__ import annotations

import re
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


class _Dumper(yaml.SafeDumper):
    """Quotes fault codes such as 80E18005 too: YAML 1.2 reads those as numbers, this library does not."""


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)
_Dumper.add_multi_representer(str, lambda dumper, word: dumper.represent_str(str(word)))  # words of ours


def print_document(document: object, form: Format) -> None:
    """Print plain data as JSON or YAML on stdout."""
    if form is Format.YAML:
        dumped = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        sys.stdout.write(dumped)
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
