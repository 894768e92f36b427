"""Every kubectl of the machine, pointed at an embedded API server of its own.

`$KUBECTL_BINARIES` (separated like PATH) names the binaries to use; without it, `kubectl` from PATH.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mindie_ha.kit.clock import LoopClock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.edge import served
from mindie_ha.sim.server import ApiServer

COMMAND_S = 20.0  # for one kubectl process; a hung one fails its test with what it printed


def binaries() -> list[str]:
    listed = [path for path in os.environ.get("KUBECTL_BINARIES", "").split(os.pathsep) if path]
    found = shutil.which("kubectl")
    return listed or ([found] if found else [])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "binary" in metafunc.fixturenames:
        missing = pytest.param("", marks=pytest.mark.skip(reason="no kubectl on this machine"), id="none")
        found = [pytest.param(path, id=Path(path).name) for path in binaries()]
        metafunc.parametrize("binary", found or [missing])


@dataclass(frozen=True)
class Kubectl:
    """Runs one kubectl binary against one server; the namespace is `mindie`."""

    binary: str
    environment: dict[str, str]
    folder: Path

    async def __call__(self, *args: str, stdin: str = "") -> str:
        """Standard output of a command that has to succeed."""
        code, out, err = await self.outcome(*args, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(args)}: exit {code}\n{out}{err}"
        return out

    async def refused(self, *args: str, stdin: str = "") -> str:
        """Standard error of a command that has to fail."""
        code, out, err = await self.outcome(*args, stdin=stdin)
        assert code != 0, f"kubectl {' '.join(args)} succeeded: {out}"
        return err

    async def outcome(self, *args: str, stdin: str = "") -> tuple[int, str, str]:
        process = await self.start(*args)
        async with asyncio.timeout(COMMAND_S):
            out, err = await process.communicate(stdin.encode())
        return process.returncode or 0, out.decode(), err.decode()

    async def start(self, *args: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            self.binary, *args, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, cwd=self.folder
        )  # fmt: skip


@pytest.fixture
async def kubectl(binary: str, tmp_path: Path) -> AsyncIterator[Kubectl]:
    server = ApiServer(clock=LoopClock(), entropy=Entropy(1))
    controllers = asyncio.create_task(server.run())
    async with served(server) as url:
        kubeconfigs.write(tmp_path / "config", url, namespace="mindie")
        environment = {"KUBECONFIG": str(tmp_path / "config"), "HOME": str(tmp_path), "PATH": os.defpath}
        yield Kubectl(binary, environment, tmp_path)
    controllers.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await controllers
