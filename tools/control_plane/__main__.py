"""`python -m tools.control_plane up | down | status | run -- CMD`.

`up` leaves a control plane running and prints how to reach it; `run` has one of its own for as long as CMD
runs, which finds it through KUBECONFIG; CMD's exit code is ours. Exit codes: 0 done, 1 failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.control_plane import binaries
from tools.control_plane.errors import ControlPlaneError
from tools.control_plane.objects import install_kinds
from tools.control_plane.planes import ControlPlane, Options, attach


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m tools.control_plane", description=__doc__)
    kept = binaries.cache_home() / "control-plane-running"
    parser.add_argument("--home", type=Path, default=kept, help="folder of `up` (default: %(default)s)")
    parser.add_argument("--compaction", default="5m0s", help="how often etcd forgets (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in {
        "build": "only make sure that the binaries are there",
        "up": "start one and leave it running",
        "down": "stop the one that is left running",
        "status": "say whether it runs; exit code 1 if not",
        "run": "run a command with a control plane of its own",
    }.items():
        commands.add_parser(name, help=about)
    known, command = _split(sys.argv[1:] if arguments is None else arguments)
    chosen = parser.parse_args(known)
    if bool(command) != (chosen.command == "run"):
        parser.error("give a command: run -- CMD" if chosen.command == "run" else "only run takes -- CMD")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: sys.exit(128 + got))
    try:
        return _act(chosen, command)
    except ControlPlaneError as error:
        print(f"control plane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _act(chosen: argparse.Namespace, command: list[str]) -> int:
    options = Options(compaction=chosen.compaction)
    if chosen.command == "build":
        print(binaries.ensure(sys.stderr))
        return 0
    if chosen.command == "up":
        return _up(chosen.home.resolve(), options)
    if chosen.command == "run":
        return _run(options, command)
    plane = attach(chosen.home.resolve())
    if chosen.command == "down":
        if plane is not None:
            plane.stop()
        print("stopped" if plane is not None else "nothing runs")
        return 0
    return _status(plane)


def _up(home: Path, options: Options) -> int:
    present = attach(home)
    if present is not None:
        if any(present.running().values()):
            raise ControlPlaneError(f"one runs already at {present.server}; `down` ends it")
        present.stop()
    plane = ControlPlane(binaries.ensure(sys.stderr), home, options, detached=True)
    _start(plane)
    print(f"export KUBECONFIG={plane.kubeconfig}")
    return 0


def _run(options: Options, command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="mindie-ha-control-plane-") as folder:
        plane = ControlPlane(binaries.ensure(sys.stderr), Path(folder), options)
        try:
            _start(plane)
            environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
            return _foreground(command, environment)
        finally:
            plane.stop()


def _foreground(command: list[str], environment: dict[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise ControlPlaneError(f"{command[0]} cannot be run: {error.strerror}") from None
    try:
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    return code if code >= 0 else 128 - code


def _start(plane: ControlPlane) -> None:
    began_s = time.monotonic()
    plane.start()
    try:
        install_kinds(plane)
    except ControlPlaneError:
        plane.stop()
        raise
    spent_s = time.monotonic() - began_s
    print(
        f"control plane: Kubernetes {binaries.VERSION} at {plane.server}, healthy after {spent_s:.1f} s",
        file=sys.stderr,
        flush=True,
    )


def _status(plane: ControlPlane | None) -> int:
    if plane is None:
        print("nothing runs")
        return 1
    for name, alive in plane.running().items():
        print(f"{name:24} {'runs' if alive else 'does not run'}  pid {plane.pids.get(name, '-')}")
    healthy = plane.healthy()
    print(f"{plane.server} is {'healthy' if healthy else 'not healthy'}; KUBECONFIG={plane.kubeconfig}")
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
