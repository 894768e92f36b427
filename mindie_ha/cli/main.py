"""`mindie-ha`: one command for running, looking and trying out.

Exit codes: 0 done; 1 the thing asked for failed; 2 bad usage or input. An error is one line: what, where,
what to do.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mindie_ha import __version__
from mindie_ha.cli import (
    adoptions,
    demo,
    explain,
    explanations,
    faults,
    isolations,
    lint,
    pauses,
    ranktables,
    requests,
    resets,
    run,
    sim,
    status,
)
from mindie_ha.cli.options import OutputOption
from mindie_ha.cli.output import Format, complain, print_document, print_line
from mindie_ha.model.errors import InputError, MindieHaError

app = typer.Typer(
    name="mindie-ha",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def say_version(asked: bool) -> None:
    """What `--version` does."""
    if asked:
        version()
        raise typer.Exit


app.command("demo")(demo.demo)
app.command("sim")(sim.sim)
app.command("run")(run.run)
app.command("status")(status.status)
app.command("why")(explanations.why)
app.command("plan")(explanations.plan)
app.command("history")(explanations.history)
app.command("faults")(faults.faults)
app.command("isolate")(isolations.isolate)
app.command("release")(isolations.release)
app.command("pause")(pauses.pause)
app.command("resume")(pauses.resume)
app.command("recover")(requests.recover)
app.command("reset")(resets.reset)
app.command("adopt")(adoptions.adopt)
app.command("lint")(lint.lint)
app.command("explain")(explain.explain_command)
app.add_typer(ranktables.app, name="ranktable")


@app.callback()
def root(
    *,
    version_: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=say_version),
    ] = False,
) -> None:
    """Keeps MindIE inference services and Ascend training jobs running when things fail."""
    del version_


@app.command()
def version(output: OutputOption = Format.TEXT) -> None:
    """Print the version."""
    if output is Format.TEXT:
        print_line(f"mindie-ha {__version__}")
    else:
        print_document({"name": "mindie-ha", "version": __version__}, output)


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        refuse(error)
        code = 2
    except InputError as error:
        complain(str(error))
        code = 2
    except MindieHaError as error:
        complain(str(error))
        code = 1
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def refuse(error: typer.TyperException) -> None:
    """Say in one line what is wrong with the command line; without arguments the help was shown already."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)  # of usage errors, whose class is not public
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    if message:
        complain(message + hint)
