"""`python -m tools.conformance`: record what a real API server answers to every request of the list."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from mindie_ha.sim import kubeconfigs
from mindie_ha.sim.transports import connected
from tools.conformance.playing import RECORDED
from tools.conformance.running import all_answered
from tools.control_plane import binaries
from tools.control_plane.errors import ControlPlaneError
from tools.control_plane.objects import install_kinds
from tools.control_plane.planes import ControlPlane, Options


async def record(plane: ControlPlane) -> dict[str, list[Any]]:
    """The answers of a running control plane."""
    async with connected(kubeconfigs.read(plane.kubeconfig)) as exchange:
        return await all_answered(exchange, prefix="recorded")


def main() -> int:
    """Start an API server, ask, write the file."""
    with tempfile.TemporaryDirectory(prefix="mindie-ha-conformance-") as folder:
        try:
            plane = ControlPlane(binaries.ensure(sys.stderr), Path(folder), Options(api_alone=True))
            plane.start()
            try:
                install_kinds(plane)
                answers = asyncio.run(record(plane))
            finally:
                plane.stop()
        except ControlPlaneError as error:
            print(f"conformance: {error}", file=sys.stderr)
            return 1
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(answers)} cases recorded in {RECORDED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
