"""Asks Kubernetes who a bearer token belongs to, and what that person may do.

A TokenReview and a SubjectAccessReview: nobody is managed here, whoever manages the cluster's users and roles
decides. Answers are remembered for a few seconds by the token's hash, so that a client that writes often
costs two requests now and then; the token itself is neither kept nor logged, and is in no error.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.resources import Resource
from mindie_ha.kit.clock import Clock
from mindie_ha.model.errors import Denied, Throttled, Unreachable

TOKEN_REVIEW = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW = Resource(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
GROUP = "mindie-ha.io"
"""The API group of what roles may name; no such API exists, and none is needed."""

REMEMBERED, REMEMBER_S = 512, 10.0
AT_ONCE, WAITING = 8, 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class User:
    """Whom a token belongs to."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """What somebody wants to do, as roles name it."""

    verb: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        kind = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f" in the namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {kind}.{GROUP}{where}"


class _Memory(Generic[T]):
    """Answers with an end, at most `REMEMBERED` of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    async def get(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        found = self._answers.get(key)
        if found is not None and found[0] > self._clock.monotonic():
            return found[1]
        answer = await ask()
        self._answers.pop(key, None)
        self._answers[key] = (self._clock.monotonic() + REMEMBER_S, answer)
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)
        return answer


class Reviews:
    """See the module."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._users: _Memory[User | None] = _Memory(clock)
        self._rights: _Memory[bool] = _Memory(clock)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def who(self, token: str) -> User | None:
        """The owner of a token; None where it is none (any more). Raises ClusterError."""
        digest = hashlib.sha256(token.encode()).digest()
        return await self._users.get(digest, lambda: self._who(token))

    async def may(self, user: User, wanted: Attributes) -> bool:
        """Whether a role allows it. Raises ClusterError."""
        return await self._rights.get((user, wanted), lambda: self._may(user, wanted))

    async def _who(self, token: str) -> User | None:
        status = await self._ask(TOKEN_REVIEW, {"token": token})
        user = status.get("user")
        if status.get("authenticated") is not True or not isinstance(user, dict):
            return None
        name = user.get("username")
        if not isinstance(name, str) or not name:
            return None
        extra = user.get("extra")
        kept = {key: _texts(value) for key, value in extra.items()} if isinstance(extra, dict) else {}
        return User(name, str(user.get("uid", "")), _texts(user.get("groups")), tuple(sorted(kept.items())))

    async def _may(self, user: User, wanted: Attributes) -> bool:
        attributes = {
            "group": GROUP,
            "verb": wanted.verb,
            "resource": wanted.resource,
            "subresource": wanted.subresource,
            "namespace": wanted.namespace,
            "name": wanted.name,
        }
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "resourceAttributes": {key: value for key, value in attributes.items() if value},
        }
        return (await self._ask(ACCESS_REVIEW, spec)).get("allowed") is True

    async def _ask(self, resource: Resource, spec: Mapping[str, object]) -> dict[str, Any]:
        body = orjson.dumps({"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec})
        if self._waiting >= WAITING:
            raise Throttled("too many tokens are being checked", retry_after_s=1.0)
        self._waiting += 1
        try:
            async with self._turns:
                answer = orjson.loads(await self._client.create(resource, "", body))
        except Denied:
            # Our own permission is missing; the server's words would quote what we sent.
            raise Denied(f"we may not create {resource.plural}", status=403) from None
        except orjson.JSONDecodeError:
            raise Unreachable(f"{resource.plural}: the answer is not JSON") from None
        finally:
            self._waiting -= 1
        status = answer.get("status") if isinstance(answer, dict) else None
        return status if isinstance(status, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


__all__ = ["ACCESS_REVIEW", "GROUP", "TOKEN_REVIEW", "Attributes", "Reviews", "User"]
