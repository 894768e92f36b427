"""Child: the least that could do the job. Watch the same ConfigMaps; on a change of one delete a pod.

No cache, no decision, no memory, no isolation: one JSON decode and one request. What the product needs
beyond this is what it costs.
"""

from __future__ import annotations

import argparse
import asyncio

import aiohttp
import orjson

from tools.bench.processes import say_ready, until_stopped

AGENT = "bench-floor"
NAME = "mindx-dl-deviceinfo-bench-floor"
LABEL = "mx-consumer-cim=true"


async def loop(url: str) -> None:
    """Watch and delete until cancelled."""
    collection = f"{url}/api/v1/configmaps"
    async with aiohttp.ClientSession(headers={"user-agent": AGENT}) as session:
        async with session.get(collection, params={"labelSelector": LABEL}) as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        query = {"labelSelector": LABEL, "watch": "true", "resourceVersion": version}
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.get(collection, params=query, timeout=timeout) as stream:
            say_ready()
            rest = b""
            async for chunk in stream.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    await _act(session, url, orjson.loads(line)["object"])


async def _act(session: aiohttp.ClientSession, url: str, config_map: dict[str, dict[str, str]]) -> None:
    data = config_map.get("data") or {}
    if config_map["metadata"]["name"] != NAME or not data.get("pod"):
        return
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": data["uid"]}}
    async with session.delete(f"{url}/api/v1/namespaces/default/pods/{data['pod']}", json=options) as answer:
        await answer.read()


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    asyncio.run(until_stopped(loop(parser.parse_args().url)))


if __name__ == "__main__":
    main()
