"""The cache of control plane binaries: whole or absent, one builder at a time, else one clear sentence."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.control_plane import binaries
from tools.control_plane.errors import ControlPlaneError

ROOT = Path(__file__).resolve().parents[2]
BUILDS = """
say() { echo "$*" >&3; }
say compiling
echo x >> "$XDG_CACHE_HOME/builds"
mkdir -p "$1" "$2"; touch "$2/etcd"
"""
ASK = """
import sys; from pathlib import Path; from tools.control_plane import binaries
print(binaries.ensure(sys.stderr, recipe=Path(sys.argv[1])))
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with every tool, where nothing is cached; PATH can be cut down by a test."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("apt-get", "dpkg-deb", *binaries.TOOLS):
        (tools / name).write_text("#!/bin/sh\nexit 1\n", encoding="ascii")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (tmp_path / "cache").mkdir()
    return tmp_path


def recipe(machine: Path, text: str = BUILDS) -> Path:
    path = machine / "build.sh"
    path.write_text(f"#!/bin/bash\nset -e\n{text}", encoding="ascii")
    path.chmod(0o755)
    return path


def test_it_is_built_once_and_says_each_step(machine: Path) -> None:
    report = io.StringIO()
    found = binaries.ensure(report, recipe=recipe(machine))
    assert (found / "etcd").exists()
    assert "compiling" in report.getvalue()
    assert binaries.ensure(io.StringIO(), recipe=recipe(machine)) == found
    assert (machine / "cache" / "builds").read_text() == "x\n"


def test_two_builders_at_once_build_once(machine: Path) -> None:
    slow = recipe(machine, BUILDS.replace("mkdir", "sleep 0.5; mkdir"))
    command = [sys.executable, "-c", ASK, str(slow)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {one.communicate(timeout=30)[0] for one in both}
    assert said == {f"{binaries.folder(slow)}\n"}
    assert (machine / "cache" / "builds").read_text() == "x\n"


def test_what_a_failed_build_left_is_never_used(machine: Path) -> None:
    broken = recipe(machine, BUILDS + "\necho no space left; exit 3\n")
    with pytest.raises(ControlPlaneError, match=r"(?s)failed while compiling.*no space left"):
        binaries.ensure(io.StringIO(), recipe=broken)
    assert not binaries.folder(broken).exists()
    assert not list((machine / "cache" / "mindie-ha").glob(".control-plane-build-*"))


def test_what_a_killed_build_left_goes_with_the_next(machine: Path) -> None:
    left = machine / "cache" / "mindie-ha" / ".control-plane-build-killed"
    (left / "out").mkdir(parents=True)
    (left / "out").chmod(0o500)
    binaries.ensure(io.StringIO(), recipe=recipe(machine))
    assert not left.exists()


def test_a_changed_recipe_builds_anew(machine: Path) -> None:
    first = binaries.ensure(io.StringIO(), recipe=recipe(machine))
    second = binaries.ensure(io.StringIO(), recipe=recipe(machine, BUILDS + "\n: other\n"))
    assert first != second


def test_without_apt_it_says_what_it_needs(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine / "nothing"))
    with pytest.raises(ControlPlaneError, match=r"no apt-get here: the build .* needs Debian's apt"):
        binaries.ensure(io.StringIO(), recipe=recipe(machine))


def test_a_tool_that_cannot_be_installed_is_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "bin" / "jq").unlink()
    for name in ("bash", "sh"):
        (machine / "bin" / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(machine / "bin"))  # its apt-get refuses everything
    with pytest.raises(ControlPlaneError, match="jq"):
        binaries.ensure(io.StringIO(), recipe=recipe(machine))
