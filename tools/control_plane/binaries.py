"""The four binaries, built once a machine and kept outside the checkout.

They live in `${XDG_CACHE_HOME:-~/.cache}/mindie-ha/control-plane-VERSION-MACHINE-RECIPE`; RECIPE is a digest
of build.sh, so a change of it builds anew. A build works in a folder of its own that is renamed when it
is complete: a folder of that name is always whole. One builder at a time; the lock is also held by the
build's own children, so it outlives a builder that was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tools.control_plane.errors import ControlPlaneError

VERSION = "1.20.2"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
RECIPE = Path(__file__).with_name("build.sh")
FREE_BYTES = 3 * 1024**3  # the scratch folder takes 2 GB at its largest
TAIL_LINES = 8
TOOLS = {
    "dpkg-source": "dpkg-dev",
    "jq": "jq",
    "make": "make",
    "openssl": "openssl",
    "rsync": "rsync",
}
"""Commands that the build or the start needs, and the Debian packages that have them."""
NEED = "needs Debian's apt, a package mirror and, for missing tools, root"


def cache_home() -> Path:
    """Where everything that outlives a checkout is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mindie-ha"


def folder(recipe: Path = RECIPE) -> Path:
    """Where the binaries of this recipe are, or will be."""
    digest = hashlib.sha256(recipe.read_bytes()).hexdigest()[:8]
    return cache_home() / f"control-plane-{VERSION}-{platform.machine()}-{digest}"


def ensure(report: IO[str], *, recipe: Path = RECIPE) -> Path:
    """The folder with the binaries, built if it is not there yet; raises ControlPlaneError.

    Progress goes to `report`, one line a step.
    """
    found = folder(recipe)
    if not found.is_dir():
        try:
            found.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ControlPlaneError(f"{found.parent} cannot be made ({error.strerror})") from None
        with _lock(found.with_name(f"{found.name}.lock"), report) as lock:
            if not found.is_dir():  # another builder may have finished while we waited
                _build(recipe, found, lock, report)
    if shutil.which("openssl") is None:
        _install(["openssl"], report)
    return found


@contextmanager
def _lock(path: Path, report: IO[str]) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"control plane: waiting for another build ({path})", file=report, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _build(recipe: Path, target: Path, lock: int, report: IO[str]) -> None:
    """Build into a scratch folder beside the target; the caller holds the lock."""
    _check_platform(target.parent)
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        _install(missing, report)
    for left_over in target.parent.glob(".control-plane-build-*"):
        _remove(left_over)
    scratch = Path(tempfile.mkdtemp(prefix=".control-plane-build-", dir=target.parent))
    log = target.with_name(f"{target.name}.build.log")
    began_s = time.monotonic()
    print(
        f"control plane: building Kubernetes {VERSION}, about 3 minutes; log: {log}", file=report, flush=True
    )
    try:
        _compile(recipe, scratch, log, lock, report)
        (scratch / "out").rename(target)
    finally:
        _remove(scratch)
    print(f"control plane: built in {time.monotonic() - began_s:.0f} s: {target}", file=report, flush=True)


def _compile(recipe: Path, scratch: Path, log: Path, lock: int, report: IO[str]) -> None:
    reader, writer = os.pipe()
    with log.open("wb") as output:
        command = ["bash", "-c", 'exec 3>&"$0"; exec "$@"', str(writer)]
        command += [str(recipe), str(scratch / "work"), str(scratch / "out")]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            pass_fds=(writer, lock), start_new_session=True, env={**os.environ, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    os.close(writer)
    began_s, step = time.monotonic(), "starting"
    try:
        with os.fdopen(reader, encoding="utf-8", errors="replace") as steps:
            for line in steps:
                step = line.strip()
                print(f"control plane: {time.monotonic() - began_s:4.0f} s  {step}", file=report, flush=True)
        code = process.wait()
    finally:
        if process.returncode is None:  # interrupted
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code != 0:
        raise ControlPlaneError(f"the build failed while {step} (it {NEED}); {log} ends with:\n{_tail(log)}")


def _check_platform(home: Path) -> None:
    absent = [tool for tool in ("apt-get", "dpkg-deb", "bash") if shutil.which(tool) is None]
    if absent:
        raise ControlPlaneError(f"there is no {absent[0]} here: the build of Kubernetes {VERSION} {NEED}")
    free = shutil.disk_usage(home).free
    if free < FREE_BYTES:
        raise ControlPlaneError(
            f"{home} has {free / 1024**3:.1f} GB free, the build needs {FREE_BYTES / 1024**3:.0f} GB; "
            "set XDG_CACHE_HOME to a larger place"
        )


def _install(packages: list[str], report: IO[str]) -> None:
    """Install Debian packages on this machine."""
    names = " ".join(packages)
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ControlPlaneError(f"these packages are missing; as root: apt-get install {names}")
    print(f"control plane: installing {names}", file=report, flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    update = ["apt-get", "-qq", "update"]
    install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages]
    said = b""
    for command in (install, update, install):  # the lists of a fresh container are empty
        done = subprocess.run(command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        said = done.stderr or done.stdout
        if command is install and done.returncode == 0:
            return
    last = said.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    raise ControlPlaneError(f"apt-get could not install {names} (is there a package mirror?): {last[0]}")


def _remove(folder: Path) -> None:
    """Delete a tree whose folders Go's build may have made read-only."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                Path(parent, name).chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-TAIL_LINES:])
