"""`mindie-ha explain FILE…`: what will happen to a job when something fails."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mindie_ha.cli.configs import load_settings
from mindie_ha.cli.lint import load
from mindie_ha.cli.options import OutputOption
from mindie_ha.cli.output import Format, complain, print_document, print_line
from mindie_ha.intake.jobs.descriptions import JobKind
from mindie_ha.intake.jobs.explaining import Explanation, Injected, explain
from mindie_ha.intake.lints.jobs.manifests import describe, surroundings
from mindie_ha.model.errors import InputError

Files = Annotated[list[str], typer.Argument(help="YAML or JSON with job manifests; a folder; - is stdin")]
Config = Annotated[Path | None, typer.Option("--config", help="settings of the controller, for its times")]


def explain_command(files: Files, config: Config = None, output: OutputOption = Format.TEXT) -> None:
    """Say what happens to each job in FILES after a fault: ladder, injected environment, every timeout."""
    settings = load_settings(config)
    subjects, refused = load(files)
    around = surroundings(subjects)
    described = [job for subject in subjects if (job := describe(subject, around)) is not None]
    jobs = [job for job in described if job.kind is not JobKind.POD_SET]
    if not jobs and not refused:
        raise InputError(
            "holds no job manifest", where=", ".join(files), advice="give an AscendJob or a vcjob"
        )
    found = [explain(job, settings=settings) for job in jobs]
    if output is Format.TEXT:
        for one in found:
            show(one)
    elif found:
        print_document({"jobs": [as_plain(one) for one in found]}, output)
    for error in refused:
        complain(str(error))
    if refused:
        raise typer.Exit(2)


def show(one: Explanation) -> None:
    """One job for people."""
    size = f"{one.pods} pods, {one.cards} NPUs"
    print_line(f"{one.title}: {one.role}{f', {one.framework}' if one.framework else ''}, {size}")
    print_line(f"  who acts: {one.who}")
    for note in one.notes:
        print_line(f"  note: {note}")
    if one.strategies:
        print_line(f"  strategies, in this order: {'; '.join(one.strategies)}")
    for number, step in enumerate(one.steps, 1):
        print_line(f"  {number}. {step.name}: {step.what}")
    for injected in one.environment:
        print_line(f"  injected into container ascend of {where(injected)}:")
        for name, value in injected.variables:
            print_line(f"    {name}={value}")
    if one.timeouts:
        print_line("  times:")
    for timeout in one.timeouts:
        print_line(f"    {timeout.seconds:g} s  {timeout.name}: {timeout.meaning} ({timeout.source})")
    if one.unseen:
        print_line("  not to be seen in YAML; look there yourself:")
    for line in one.unseen:
        print_line(f"    {line}")


def where(injected: Injected) -> str:
    """Whose environment it is."""
    return f"{injected.pods} {injected.task} pod{'s' if injected.pods != 1 else ''}"


def as_plain(one: Explanation) -> dict[str, Any]:
    """One job for machines."""
    plain = asdict(one)
    plain["environment"] = [
        {"task": injected.task, "pods": injected.pods, "variables": dict(injected.variables)}
        for injected in one.environment
    ]
    plain["ladder"] = plain.pop("steps")
    return plain
