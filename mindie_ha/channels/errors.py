"""The errors of the channels.

ChannelError
├── NotRegistered        Subscribe without Register; the text is the one that clients know from the wire
├── LimitReached         a bound on registrations or subscribers holds
├── ServerNotStarted     the gRPC server cannot listen
└── UpstreamSilent       the upstream did not answer a call of ours
"""

from __future__ import annotations

from mindie_ha.model.errors import InputError, MindieHaError

_SHOWN = 253  # of a name that came from outside: a longer one is no name


class ChannelError(MindieHaError):
    """Root of everything that this room raises on purpose."""


class NotRegistered(ChannelError):  # noqa: N818 - a condition of the protocol, named as the wire names it
    """Subscribe without Register."""

    def __init__(self, job_id: str, role: str) -> None:
        super().__init__(f"jobId={job_id[:_SHOWN]} not registered, role={role[:_SHOWN]}")


class LimitReached(ChannelError):  # noqa: N818 - reads as what happened
    """A bound on registrations or subscribers holds."""


class ServerNotStarted(ChannelError, InputError):  # noqa: N818 - reads as what happened
    """The gRPC server cannot listen: its address or its TLS files, named in `where`."""


class UpstreamSilent(ChannelError):  # noqa: N818 - reads as what happened
    """The upstream did not answer a call of ours, or there is none."""


__all__ = ["ChannelError", "LimitReached", "NotRegistered", "ServerNotStarted", "UpstreamSilent"]
