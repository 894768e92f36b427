"""Every error the product raises on purpose, drawn as a tree.

    MindieHaError
    ├── InputError            external input refused: what, where, what to do
    │   ├── SettingsError     our own configuration
    │   └── RanktableError    a rank table that cannot be read (model/ranktables.py)
    ├── ClusterError          the Kubernetes API refused or did not answer
    │   ├── Conflict          409: somebody else wrote first, or a precondition did not hold
    │   ├── NotFound          404
    │   ├── Gone              410: the watch or continue token is too old
    │   ├── Denied            401/403: which verb on which resource is missing
    │   ├── Throttled         429, with the server's retry_after_s
    │   ├── Refused           any other 4xx
    │   └── Unreachable       no answer, a cut connection, or 5xx
    ├── LeaseLost             a write was stopped by the fence
    ├── NotPermitted          a deletion was stopped: the job is not ours any more
    └── LedgerUnreadable      digest, schema or size of a ledger is wrong: observe only

Callers catch at the level they need. API errors are mapped in one place (`cluster/transports.py`).
"""

from __future__ import annotations


class MindieHaError(Exception):
    """Root of the tree."""


class InputError(MindieHaError):
    """External input was refused. `where` names the object or path, `advice` the next step."""

    def __init__(self, what: str, *, where: str, advice: str = "") -> None:
        super().__init__(f"{where}: {what}" + (f" ({advice})" if advice else ""))
        self.what = what
        self.where = where
        self.advice = advice


class SettingsError(InputError):
    """Our own configuration is wrong."""


class ClusterError(MindieHaError):
    """The Kubernetes API refused or did not answer. `status` is the HTTP code, 0 for none."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Conflict(ClusterError):  # noqa: N818 - the field's word
    """409: somebody else wrote first, or a UID or resourceVersion precondition did not hold."""


class NotFound(ClusterError):  # noqa: N818
    """404: the object is not there."""


class Gone(ClusterError):  # noqa: N818
    """410: the version asked for is too old; list again. `continue_token` goes on at the newest."""

    def __init__(self, message: str, *, continue_token: str = "") -> None:
        super().__init__(message, status=410, reason="Expired")
        self.continue_token = continue_token


class Denied(ClusterError):  # noqa: N818
    """401 or 403: a permission is missing."""


class Throttled(ClusterError):  # noqa: N818
    """429: asked to come back after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message, status=429, reason="TooManyRequests")
        self.retry_after_s = retry_after_s


class Refused(ClusterError):  # noqa: N818
    """Any other 4xx: repeating it unchanged cannot help."""


class Unreachable(ClusterError):  # noqa: N818
    """No answer in time, a cut connection, or a 5xx: whether it happened is unknown."""


class LeaseLost(MindieHaError):  # noqa: N818
    """The fence stopped a write: we are not, or no longer, the leader."""


class NotPermitted(MindieHaError):  # noqa: N818
    """A deletion that was decided must not be sent any more: what it rested on has changed."""


class LedgerUnreadable(MindieHaError):  # noqa: N818
    """A ledger's digest, schema version or shape is wrong; its workload is observed only."""
