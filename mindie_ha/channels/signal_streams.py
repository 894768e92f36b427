"""Open fault streams, each with a latest-value mailbox, woken when something they tell of may have changed.

A stream asks for the content itself when it is woken, so a burst of changes is one message, and a state that
came back to what the client knows is none. A client that knows nothing counts as told "normal": the first
message comes only if something is wrong. Whose faults a client means is asked anew each time; while nobody
can say, the stream stays open and silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from mindie_ha.channels.fault_signals import CLUSTER, FaultSignal, FaultSubject, SignalPort
from mindie_ha.channels.latest_values import Mailbox
from mindie_ha.kit.clock import Clock

RESOLVE_RETRY_S = 1.0
CLUSTER_PAUSE_S = 1.0  # between two looks at the whole cluster


class SignalStream:
    """One client's stream."""

    def __init__(self, port: SignalPort, clock: Clock, *, job_id: str, peer_ip: str) -> None:
        self._port = port
        self._clock = clock
        self._job_id = job_id
        self._peer_ip = peer_ip
        nothing = FaultSignal(job_id=job_id, nodes=())
        self._box: Mailbox[FaultSignal] = Mailbox(delivered_digest=nothing.digest)
        self._generation = 0
        self.subject: FaultSubject | None = None

    async def next(self) -> FaultSignal | None:
        """Wait for the next message to send; None when the stream has to end."""
        while not self._box.closed:
            self._look()
            if self._box.pending is not None:
                return await self._box.take()
            if self.subject is None:
                with suppress(TimeoutError):
                    async with self._clock.timeout(RESOLVE_RETRY_S):
                        await self._box.poked()
                continue
            await self._box.poked()
            if self.subject == CLUSTER and not self._box.closed:
                await self._clock.sleep(CLUSTER_PAUSE_S)
        return None

    def sent(self) -> None:
        """The message has been written."""
        self._box.confirm()

    def poke(self) -> None:
        """What it tells of may have changed."""
        self._box.poke()

    def close(self) -> None:
        """End it."""
        self._box.close()

    def _look(self) -> None:
        self.subject = self._port.subject(self._job_id, self._peer_ip)
        if self.subject is None:
            return
        self._generation += 1
        nodes = self._port.faults_of(self.subject)
        self._box.offer(FaultSignal(job_id=self._job_id, nodes=nodes, generation=self._generation))


class SignalStreams:
    """All open fault streams of one server."""

    def __init__(self, *, port: SignalPort, clock: Clock) -> None:
        self.port = port
        self._clock = clock
        self._open: set[SignalStream] = set()
        self._closing = False

    @contextmanager
    def stream(self, job_id: str, *, peer_ip: str) -> Iterator[SignalStream]:
        """One stream for the time of the block."""
        stream = SignalStream(self.port, self._clock, job_id=job_id, peer_ip=peer_ip)
        self._open.add(stream)
        if self._closing:
            stream.close()
        try:
            yield stream
        finally:
            stream.close()
            self._open.discard(stream)

    def changed(self, subjects: Iterable[FaultSubject]) -> None:
        """Wake the streams that tell of any of `subjects`."""
        if not self._open:
            return
        concerned = frozenset(subjects)
        for stream in self._open:
            if stream.subject in concerned:
                stream.poke()

    def close(self) -> None:
        """End every stream; later ones end at once."""
        self._closing = True
        for stream in self._open:
            stream.close()


__all__ = ["SignalStream", "SignalStreams"]
