"""HTTP/2 by hand, as far as a client needs it that no library would let be so rude.

Headers are literals without index or Huffman code, so that no table of them has to be kept.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW = 4


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    """One frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def hello(*, window: int) -> bytes:
    """What a client says first; `window`: bytes of a stream that it takes before it has to ask for more."""
    return PREFACE + frame(SETTINGS, struct.pack(">HI", INITIAL_WINDOW, window)) + frame(SETTINGS, flags=ACK)


def client_info(job_id: str, role: str) -> bytes:
    """`ClientInfo` of `config.Config`; both below 128 bytes."""
    return b"".join(bytes((tag, len(text))) + text.encode() for tag, text in ((0x0A, job_id), (0x12, role)))


def call(stream: int, method: str, message: bytes, *, claims: int | None = None) -> bytes:
    """A unary request; `claims` is the length that it says it has."""
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)
    length = len(message) if claims is None else claims
    body = b"\0" + struct.pack(">I", length) + message
    ends = END_STREAM if claims is None else 0
    return frame(HEADERS, block, flags=END_HEADERS, stream=stream) + frame(
        DATA, body, flags=ends, stream=stream
    )


def _text(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


class Line:
    """One TCP connection from an address of our choice; reads nothing until asked."""

    def __init__(self, port: int, *, source: str) -> None:
        self._port = port
        self._source = source
        self.received = bytearray()

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(self._source, 0), limit=1024
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._writer.transport.abort()

    async def say(self, *parts: bytes) -> None:
        """Send, without waiting for an answer."""
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def listen(self, within_s: float) -> bool:
        """Take what comes for a while; False once the other side hung up."""
        try:
            async with asyncio.timeout(within_s):
                while data := await self._reader.read(65536):
                    self.received += data
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        return False


def unread_streams(methods: Sequence[str], messages: Sequence[bytes], *, count: int) -> bytes:
    """`count` rounds of the calls, on streams that are never read."""
    stream = 1
    said = []
    for _ in range(count):
        for method, message in zip(methods, messages, strict=True):
            said.append(call(stream, method, message))
            stream += 2
    return b"".join(said)
