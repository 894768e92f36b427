"""`mindie-ha lint FILE…`: what is wrong with objects before or after they go to a cluster."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mindie_ha.cli.files import expand, read_text
from mindie_ha.cli.options import OutputOption
from mindie_ha.cli.output import Format, complain, print_document, print_line
from mindie_ha.intake.lints.checking import RULES, check_all
from mindie_ha.intake.lints.remarks import CheckCode, Remark, Sheet, worst
from mindie_ha.intake.lints.subjects import Subject, read
from mindie_ha.model.errors import InputError

Files = Annotated[
    list[str],
    typer.Argument(
        help="YAML or JSON, any number of documents; a folder (its *.yaml, *.yml, *.json); - is stdin"
    ),
]


def lint(files: Files, output: OutputOption = Format.TEXT) -> None:
    """Say what is wrong with job manifests and fault ConfigMaps: where, what, why, what to do.

    Exits 1 if something is, 2 if a file cannot be read (what can be is looked at all the same).
    """
    subjects, refused = load(files)
    sheets = check_all(subjects)
    found = worst(sheets)
    if output is not Format.TEXT:
        told: dict[str, Any] = {
            "objects": [as_plain(sheet) for sheet in sheets],
            "ok": not found and not refused,
        }
        if refused:
            told["unreadable"] = [str(error) for error in refused]
        if sheets or not refused:
            print_document(told, output)
    else:
        for sheet in sheets:
            show(sheet)
        if not all(sheet.rule for sheet in sheets):
            print_line(f"looked at are: {', '.join(rules.name for rules in RULES)}")
    for error in refused:
        complain(str(error))
    if refused or found:
        raise typer.Exit(2 if refused else 1)


def load(files: list[str]) -> tuple[list[Subject], list[InputError]]:
    """The objects of all files, and the files that could not be read."""
    subjects: list[Subject] = []
    refused: list[InputError] = []
    for name in files:
        try:
            for path in expand(name):
                subjects += read(read_text(path), file=path)
        except InputError as error:
            refused.append(error)
    return subjects, refused


def show(sheet: Sheet) -> None:
    """One object for people."""
    if not sheet.rule:
        print_line(f"{sheet.name}: not looked at")
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
    line = f"line {remark.line}: " if remark.line else ""
    why = f"; {remark.why}" if remark.why else ""
    advice = f" ({remark.advice})" if remark.advice else ""
    docs = f", {remark.docs}" if remark.docs else ""
    return f"{remark.weight}: {line}{remark.where}: {remark.what}{why}{advice} [{remark.code}{docs}]"


def as_plain(sheet: Sheet) -> dict[str, Any]:
    """One object for machines."""
    return {
        "object": sheet.name,
        "file": sheet.file,
        "document": sheet.document,
        "rule": sheet.rule,
        "verdict": ("wrong" if sheet.is_wrong else "ok") if sheet.rule else "not looked at",
        "check_code": sheet.check_code,
        "findings": [
            {
                "severity": remark.weight,
                "code": remark.code,
                "where": remark.where,
                "line": remark.line,
                "what": remark.what,
                "why": remark.why,
                "advice": remark.advice,
                "docs": remark.docs,
            }
            for remark in sheet.remarks
        ],
        "says": list(sheet.meaning),
    }
