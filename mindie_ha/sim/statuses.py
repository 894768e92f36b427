"""Errors of the API server as the `Status` objects that real servers send.

Every refusal is a `StatusError` with code, reason, message and details; the server core turns it into a
response in one place. Clients (kubectl, client-go, kubernetes-asyncio) branch on code and reason and show
the message, so all three are a real server's own, down to the wording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mindie_ha.sim.resources import Resource

Object = dict[str, Any]  # one Kubernetes object as decoded JSON

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing wrong with one field: `reason` (FieldValueRequired, FieldValueInvalid, ...), text, path."""

    reason: str
    message: str
    field: str


class FieldCause(Protocol):
    """Anything that reads like a `Cause`."""

    @property
    def reason(self) -> str:
        """Machine-readable reason."""
        ...

    @property
    def message(self) -> str:
        """What is wrong."""
        ...

    @property
    def field(self) -> str:
        """Path of the field."""
        ...


class StatusError(Exception):
    """A refusal: HTTP `code`, Kubernetes `reason`, `message`, `details`, extra response headers."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        list_meta: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = dict(headers or {})
        self.list_meta = dict(list_meta or {})

    def status(self) -> Object:
        """The Status object."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = dict(self.details)
        body["code"] = self.code
        return body


def success(*, details: Mapping[str, Any] | None = None, code: int | None = None) -> Object:
    """A Status of success."""
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = dict(details)
    if code is not None:
        body["code"] = code
    return body


def qualified(resource: Resource) -> str:
    """`pods` or `ascendjobs.mindxdl.gitee.com`, as messages name a resource."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str, **more: object) -> Object:
    details: Object = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return {**details, **more}


def no_such_path() -> StatusError:
    """404 for a path that no kind serves."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def not_found(resource: Resource, name: str) -> StatusError:
    """404: the object is not there."""
    message = f'{qualified(resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_details(resource, name))


def already_exists(resource: Resource, name: str) -> StatusError:
    """409 on create."""
    message = f'{qualified(resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> StatusError:
    """409: another version or another object than the caller thought."""
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def apply_conflict(causes: Sequence[FieldCause]) -> StatusError:
    """409 of a server-side apply: other managers own these fields."""
    noun = "conflict" if len(causes) == 1 else "conflicts"
    lines = "; ".join(f"{cause.message}: {cause.field}" for cause in causes)
    return StatusError(
        409,
        "Conflict",
        f"Apply failed with {len(causes)} {noun}: {lines}",
        details={"causes": [_cause(cause) for cause in causes]},
    )


def invalid(resource: Resource, name: str, causes: Sequence[FieldCause]) -> StatusError:
    """422 with every cause."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    shown = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = _details(resource, name, causes=[_cause(cause) for cause in causes])
    details["kind"] = resource.kind
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {shown}', details=details)


def bad_request(message: str) -> StatusError:
    """400: the request itself is wrong."""
    return StatusError(400, "BadRequest", message)


def unexpected(message: str) -> StatusError:
    """500 without a reason: what a real server says where it did not expect such a mistake."""
    return StatusError(500, "", message)


def bad_patch(message: str) -> StatusError:
    """422: the patch is well formed, its result is not of the kind's types."""
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": causes})


def bad_options(kind: str, cause: FieldCause) -> StatusError:
    """422 for a query parameter of a write or a list; `kind` is CreateOptions, ListOptions, ..."""
    return invalid(Resource("meta.k8s.io", "v1", kind, kind, kind), "", [cause])


def forbidden(resource: Resource, name: str, why: str, *, causes: Sequence[FieldCause] = ()) -> StatusError:
    """403: admission says no."""
    more = {"causes": [_cause(cause) for cause in causes]} if causes else {}
    message = f'{qualified(resource)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details=_details(resource, name, **more))


def method_not_allowed() -> StatusError:
    """405: the path exists, the verb does not."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unsupported_media(accepted: Sequence[str]) -> StatusError:
    """415: this body format is not taken here."""
    message = "the body of the request was in an unknown format - accepted media types include: "
    return StatusError(415, "UnsupportedMediaType", message + ", ".join(accepted), details={})


def expired(message: str, *, fresh_continue: str = "") -> StatusError:
    """410: this version is no longer there; a list's carries a token that goes on at the newest version."""
    return StatusError(
        410, "Expired", message, list_meta={"continue": fresh_continue} if fresh_continue else {}
    )


def too_large_version(wanted: int, current: int) -> StatusError:
    """504: a list at a version that has not happened yet."""
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, details={"causes": causes, "retryAfterSeconds": 1})


def too_many_requests(
    message: str, *, retry_after_s: int = 0, causes: Sequence[FieldCause] = ()
) -> StatusError:
    """429, with Retry-After where given."""
    details: Object = {}
    if causes:
        details["causes"] = [_cause(cause) for cause in causes]
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    headers = {"retry-after": str(retry_after_s)} if retry_after_s else {}
    return StatusError(429, "TooManyRequests", message, details=details, headers=headers)


def _cause(cause: FieldCause) -> Object:
    body = {"reason": cause.reason, "message": cause.message}
    if cause.field:
        body["field"] = cause.field
    return body
