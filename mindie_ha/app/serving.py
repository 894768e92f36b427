"""The controller as a process: on a real cluster, until a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from mindie_ha.app.controller import App
from mindie_ha.app.edges import Edges
from mindie_ha.cluster.connections import connect
from mindie_ha.cluster.leader_labels import own_pod
from mindie_ha.kit import heaps
from mindie_ha.kit.clock import LoopClock, boot_time
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import make_log
from mindie_ha.model.settings import Settings


async def serve(
    settings: Settings, *, kubeconfig: Path | None, audit_file: Path | None, log_level: str
) -> None:
    """Run the controller on a real cluster until SIGTERM or SIGINT."""
    log = make_log(sys.stderr, level=log_level)
    transport = await connect(str(kubeconfig) if kubeconfig else None)
    heaps.relax()
    edges = Edges(
        transport=transport,
        clock=LoopClock(),
        entropy=Entropy(),
        log=log,
        steady=boot_time,
        identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{Entropy().uuid()[:8]}",
        pod=own_pod(os.environ),
        filled=heaps.freeze,
        in_pod=kubeconfig is None,
    )
    try:
        app = App(settings, edges, audit_file=audit_file)
        task = asyncio.create_task(app.run(), name="app")
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            log.info("stopped")
    finally:
        await transport.close()
