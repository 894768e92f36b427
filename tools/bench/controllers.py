"""Child: the controller, started as `mindie-ha run --kubeconfig FILE --config FILE` starts it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from mindie_ha.app import serve
from mindie_ha.cli.configs import load_settings
from tools.bench.processes import say_ready

# The pauses between two recoveries of one instance are taken away, so that runs can follow at once.
CONFIG = """
phases: {settle_s: 0.05}
faults: {release_after_s: 0, manual_threshold: 1000000}
budgets: {backoff_first_s: 0.001, backoff_max_s: 0.001, stable_s: 0.001, max_attempts: 1000000}
"""


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--grpc", type=int, required=True)
    parser.add_argument("--http", type=int, required=True)
    chosen = parser.parse_args()
    flags = {
        "grpc": {"listen": f"127.0.0.1:{chosen.grpc}"},
        "http": {"listen": f"127.0.0.1:{chosen.http}"},
    }
    settings = load_settings(chosen.config, flags=flags)
    say_ready()
    asyncio.run(serve(settings, kubeconfig=chosen.kubeconfig, audit_file=None, log_level="info"))


if __name__ == "__main__":
    main()
