"""`python -m tools.hostile`: what clients that mean harm cost a real `mindie-ha run`, and what others notice.

Beside each attack an honest subscriber holds its stream, and another one comes anew again and again. Printed
are the memory of the controller before, at its peak and after, and the longest time in which a newcomer got
its table. Exit code 1: memory grew by 50 MB or more, a newcomer waited 2 s or longer, or the stream ended.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from grpc import aio

from mindie_ha.wire import config_pb2
from tools.hostile.attacks import ATTACKS, REGISTER, SUBSCRIBE, Attack, Target

MANIFEST = Path(__file__).parents[2] / "mindie_ha" / "demo" / "manifests" / "pd-a2.yaml"
JOB, TABLE = "mindie-ms", "/v1/services/mindie/mindie-ms/ranktable"
MAX_GROWTH_MB, MAX_WAIT_S = 50.0, 2.0
READY_S = 60.0
COMMAND = "from mindie_ha.cli.main import main; main()"


@dataclass(frozen=True)
class Found:
    """One attack and its price."""

    name: str
    ended: str
    before_mb: float
    peak_mb: float
    after_mb: float
    slowest_s: float
    stream_lived: bool

    @property
    def good(self) -> bool:
        """Whether it cost little, and others nothing."""
        return (
            self.peak_mb - self.before_mb < MAX_GROWTH_MB
            and self.slowest_s < MAX_WAIT_S
            and self.stream_lived
        )


@asynccontextmanager
async def process(*arguments: str, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """`mindie-ha …`, as long as the context lasts."""
    with log.open("wb") as file:
        found = await asyncio.create_subprocess_exec(
            sys.executable, "-c", COMMAND, *arguments, stdout=file, stderr=file
        )
    try:
        yield found
    finally:
        with suppress(ProcessLookupError):
            found.terminate()
        try:
            async with asyncio.timeout(10):
                await found.wait()
        except TimeoutError:
            found.kill()
            await found.wait()


def free_port() -> int:
    """A port that nobody has now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


async def ready(target: Target) -> None:
    """Wait until a table is served."""
    async with asyncio.timeout(READY_S), aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{target.http}{TABLE}") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.2)


def _subscribe(channel: aio.Channel) -> aio.UnaryStreamCall:
    decode = config_pb2.RankTableStream.FromString
    return channel.unary_stream(SUBSCRIBE, response_deserializer=decode)(
        config_pb2.ClientInfo(jobId=JOB, role="honest").SerializeToString()
    )


async def newcomer_s(target: Target) -> float:
    """How long a new client waits for its table."""
    began_s = time.monotonic()
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with aio.insecure_channel(f"127.0.0.1:{target.grpc}", options=options) as channel:
        info = config_pb2.ClientInfo(jobId=JOB, role="honest").SerializeToString()
        with suppress(aio.AioRpcError):
            async with asyncio.timeout(10):
                await channel.unary_unary(REGISTER)(info)
                if await _subscribe(channel).read() is not aio.EOF:
                    return time.monotonic() - began_s
    return float("inf")


async def suffer(name: str, attack: Attack, target: Target, pid: int) -> Found:
    """Attack, and watch what it does to memory and to others."""
    async with aio.insecure_channel(f"127.0.0.1:{target.grpc}") as channel:
        info = config_pb2.ClientInfo(jobId=JOB, role="honest").SerializeToString()
        await channel.unary_unary(REGISTER)(info)
        stream = _subscribe(channel)
        await stream.read()
        before = peak = memory_mb(pid)
        waits = [await newcomer_s(target)]
        running = asyncio.create_task(attack(target))
        while not running.done():
            waits.append(await newcomer_s(target))
            for _ in range(5):
                peak = max(peak, memory_mb(pid))
                await asyncio.sleep(0.05)
        waits.append(await newcomer_s(target))
        await asyncio.sleep(1)
        lived = not stream.done()
        stream.cancel()
    return Found(name, running.result(), before, peak, memory_mb(pid), max(waits), lived)


async def measure(directory: Path) -> list[Found]:
    """All attacks on one controller, one after another."""
    kubeconfig, api = directory / "kubeconfig", free_port()
    target = Target(grpc=free_port(), http=free_port(), job_id=JOB)
    sim = (
        "sim",
        "--listen",
        f"127.0.0.1:{api}",
        "--kubeconfig",
        str(kubeconfig),
        "--manifest",
        str(MANIFEST),
    )
    run = ("run", "--kubeconfig", str(kubeconfig), "--grpc-listen", f"127.0.0.1:{target.grpc}",
           "--http-listen", f"127.0.0.1:{target.http}")  # fmt: skip
    async with process(*sim, log=directory / "sim.log"):
        async with asyncio.timeout(READY_S):
            while not kubeconfig.exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.2)
        async with process(*run, log=directory / "run.log") as controller:
            await ready(target)
            for _ in range(20):
                await newcomer_s(target)  # what is loaded and compiled on first use is no growth
            return [await suffer(name, attack, target, controller.pid) for name, attack in ATTACKS.items()]


def main() -> int:
    """Measure, print, judge."""
    with tempfile.TemporaryDirectory(prefix="mindie-ha-hostile-") as directory:
        try:
            found = asyncio.run(measure(Path(directory)))
        except TimeoutError:
            print((Path(directory) / "run.log").read_text(encoding="utf-8")[-2000:], file=sys.stderr)
            return 2
    if "json" in sys.argv[1:]:
        print(json.dumps([one.__dict__ for one in found], indent=2))
    else:
        print(f"{'attack':<24}{'before':>9}{'peak':>9}{'after':>9}{'newcomer':>11}  how it ended")
        for one in found:
            print(
                f"{one.name:<24}{one.before_mb:>6.1f} MB{one.peak_mb:>6.1f} MB{one.after_mb:>6.1f} MB"
                f"{one.slowest_s:>9.2f} s  {one.ended}{'' if one.good else '   <-- TOO MUCH'}"
            )
    return 0 if all(one.good for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
