"""`mindie-ha lint FILE…`: what is wrong with objects before or after they go to a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.cli.options import OutputOption
from mindie_ha.cli.output import Format, print_document, print_line
from mindie_ha.intake.lints.checking import RULES, check
from mindie_ha.intake.lints.remarks import CheckCode, Remark, Sheet, worst
from mindie_ha.intake.lints.subjects import MAX_FILE, read
from mindie_ha.model.errors import InputError

STDIN = "-"
Files = Annotated[
    list[str], typer.Argument(help="YAML or JSON, as `kubectl get … -o yaml` prints; - is stdin")
]


def lint(files: Files, output: OutputOption = Format.TEXT) -> None:
    """Say what is wrong with fault ConfigMaps in files: where, what, what to do. Exits 1 if something is."""
    sheets = [check(subject) for name in files for subject in read(_text(name), file=name)]
    if output is not Format.TEXT:
        print_document({"objects": [as_plain(sheet) for sheet in sheets], "ok": not worst(sheets)}, output)
    else:
        for sheet in sheets:
            show(sheet)
    if worst(sheets):
        raise typer.Exit(1)


def show(sheet: Sheet) -> None:
    """One object for people."""
    if not sheet.rule:
        known = ", ".join(rules.name for rules in RULES)
        print_line(f"{sheet.name}: not looked at (known are: {known})")
        return
    verdict = "wrong" if sheet.is_wrong else "ok"
    code = f", CheckCode {sheet.check_code}" if sheet.check_code is not CheckCode.NONE else ""
    print_line(f"{sheet.name}: {verdict} ({sheet.rule}{code})")
    for remark in sheet.remarks:
        print_line(f"  {sentence(remark)}")
    for line in sheet.meaning:
        print_line(f"  says: {line}")
    if sheet.check_code in (CheckCode.MISMATCH, CheckCode.ABSENT) and sheet.meaning:
        print_line("  but its readers drop all that the CheckCode covers, because it does not fit")


def sentence(remark: Remark) -> str:
    """One finding in one line."""
    advice = f" ({remark.advice})" if remark.advice else ""
    return f"{remark.weight}: {remark.where}: {remark.what}{advice} [{remark.code}]"


def as_plain(sheet: Sheet) -> dict[str, Any]:
    """One object for machines."""
    return {
        "object": sheet.name,
        "rule": sheet.rule,
        "verdict": ("wrong" if sheet.is_wrong else "ok") if sheet.rule else "not looked at",
        "check_code": sheet.check_code,
        "findings": [
            {
                "severity": remark.weight,
                "code": remark.code,
                "where": remark.where,
                "what": remark.what,
                "advice": remark.advice,
            }
            for remark in sheet.remarks
        ],
        "says": list(sheet.meaning),
    }


def _text(name: str) -> str:
    try:
        if name == STDIN:
            return sys.stdin.buffer.read(MAX_FILE + 1).decode("utf-8")
        path = Path(name)
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"is larger than {MAX_FILE >> 20} MiB", where=name)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=name) from None
