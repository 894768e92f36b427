"""The judge's ear: every request as the API server itself sees it.

A `Tap` stands between the socket and the embedded API server and notes when a request came in and when its
answer was made. Times are `time.monotonic()`, one clock for all processes of a host. `GET /bench/requests`
gives the notes, so the process that measures needs no second channel and the product is not touched.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass

import orjson

from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange

PATH = "/bench/requests"
KEPT = 20_000
_COMPLETED = rb"\"status\":\"completed\""  # inside the JSON text of an hccl.json


@dataclass(frozen=True, slots=True)
class Note:
    """One answered request."""

    seq: int
    method: str
    path: str
    agent: str
    status: int
    received_s: float
    answered_s: float
    completed: bool  # the answer shows a completed instance table


class Tap:
    """An `Exchange` that notes what passes through it; watches and lists are not noted."""

    def __init__(self, inner: Exchange) -> None:
        self._inner = inner
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._seq = 0

    async def handle(self, request: ApiRequest) -> ApiResponse:
        """Pass on and note."""
        received_s = time.monotonic()
        if request.path == PATH:
            return self._told(int(request.query.get("after", "0")))
        response = await self._inner.handle(request)
        if request.method == "GET" and request.query:
            return response
        self._seq += 1
        self._notes.append(
            Note(
                seq=self._seq,
                method=request.method,
                path=request.path,
                agent=request.headers.get("user-agent", ""),
                status=response.status,
                received_s=received_s,
                answered_s=time.monotonic(),
                completed=_COMPLETED in response.body,
            )
        )
        return response

    def _told(self, after: int) -> ApiResponse:
        notes = [asdict(note) for note in self._notes if note.seq > after]
        return ApiResponse(200, orjson.dumps(notes), {"content-type": "application/json"})
