"""What runs inside a simulated pod: the seam between the kubelet and the programs.

The kubelet asks a `ProgramFactory` once per container start. A program is one coroutine: its result is
the exit code of the container; cancellation is how the kubelet stops it (pod deleted, container killed,
node lost), and it must then close its sockets and return or re-raise promptly. A program that raises
`ProgramError` ends with exit code 1, as a process that died on an exception does.

A container without a readinessProbe is ready as soon as it runs, whatever the program says. With one,
`set_ready` is the probe: not ready until the program calls `set_ready(True)`. A pod for which the factory
answers None behaves like a process that starts, gets ready after the kubelet's delay and runs for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


class ProgramError(Exception):
    """The program cannot go on; the container exits with code 1 and this message."""


@dataclass(frozen=True, slots=True)
class PodSandbox:
    """The pod as its container sees it at the moment of the start.

    `env` is resolved for the first container (values, fieldRef, ConfigMaps, `$(NAME)`); `volumes` maps the
    name of each ConfigMap volume to its files (an absent ConfigMap gives no files) as at container start.
    """

    namespace: str
    name: str
    uid: str
    ip: str
    host_ip: str
    node: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    env: Mapping[str, str]
    volumes: Mapping[str, Mapping[str, str]]
    set_ready: Callable[[bool], None]
    """Answer of the readiness probe from now on."""
    annotate: Callable[[Mapping[str, str | None]], Awaitable[None]]
    """Merge annotations into the pod (None removes); raises `sim.client.ApiError` when refused."""
    read_volume: Callable[[str], Mapping[str, str]]
    """The files of a ConfigMap volume as the kubelet knows them now; empty where there are none."""


class Program(Protocol):
    """One process in a pod."""

    async def run(self) -> int:
        """Run until the process exits; the result is its exit code."""
        ...


ProgramFactory = Callable[[PodSandbox], Program | None]

__all__ = ["PodSandbox", "Program", "ProgramError", "ProgramFactory"]
