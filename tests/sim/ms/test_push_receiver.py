"""The push target records what it gets and fails as told."""

from __future__ import annotations

import asyncio

import aiohttp

from mindie_ha.kit.clock import LoopClock
from mindie_ha.sim.ms.receivers import DIGEST_HEADER, GENERATION_HEADER, PushReceiver


async def test_pushes_are_recorded_with_their_headers_also_refused_and_late_ones() -> None:
    headers = {GENERATION_HEADER: "4", DIGEST_HEADER: "abc"}
    async with PushReceiver(clock=LoopClock()) as receiver, aiohttp.ClientSession() as session:
        receiver.fail_next(1, status=500)
        receiver.delay_s = 0.02
        answers = []
        for body in (b"one", b"two"):
            async with session.post(receiver.url, data=body, headers=headers) as response:
                answers.append(response.status)
        async with asyncio.timeout(1):
            await receiver.wait_for(1)

    assert answers == [500, 200]
    assert [(push.body, push.status) for push in receiver.pushes] == [(b"one", 500), (b"two", 200)]
    (accepted,) = receiver.received
    assert (accepted.generation, accepted.digest, accepted.peer) == ("4", "abc", "127.0.0.1")
