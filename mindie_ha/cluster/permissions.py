"""Every permission that we use, and which we lack: asked at start, and while any is missing, said by name.

The table is what `manifests/rbac.yaml` grants and what `docs/permissions.md` explains; tests hold the three
together. A SelfSubjectAccessReview needs no permission of its own. What is missing is said before it is
needed: the first deletion is a bad moment to learn that pods may not be deleted. Nothing is stopped here: the
parts that meet the refusal know best how to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from mindie_ha.cluster.client import Client
from mindie_ha.cluster.resources import (
    ASCEND_JOB,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    LEASE,
    NODE,
    POD,
    POD_GROUP,
    REPLICA_SET,
    STATEFUL_SET,
    VOLCANO_JOB,
    Resource,
)
from mindie_ha.cluster.reviews import ACCESS_REVIEW, TOKEN_REVIEW
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.model.errors import ClusterError, InputError
from mindie_ha.model.settings import HttpAuth, Settings

SELF_REVIEW = Resource(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
SOON_S = 30.0  # between two looks while something is missing
AT_ONCE = 8
BLIND = "not ready; no decision is made"
POLLED = "read again and again, at most 30 s apart: all news comes late"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one kind, and what happens without it."""

    resource: Resource
    verb: str
    without: str
    namespace: str = ""
    """Where it is used; empty: everywhere."""

    def __str__(self) -> str:
        group = f".{self.resource.group}" if self.resource.group else ""
        where = f" in the namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource.plural}{group}{where}"


TAINTS = "isolation fails loudly; recovery goes on after `phases.isolate_s`, noted"
MEMORY = "no ledger, no action: nothing is deleted"
GUARDED = "not adopted: Volcano acts first, we after `ownership.guard_s`"
TOLD = "counted in `mindie_ha_events_dropped_total`"
FOLLOWS = "not leading: nothing is written, `/readyz` and the log name the verb"
HIDDEN = "whoever leads works, but clients do not find it by the gRPC Service; `/readyz` and the log say so"
BY_HAND = "`adopt` is refused; label with kubectl"
READS = (
    *(Permission(kind, "list", BLIND) for kind in (NODE, POD, CONFIG_MAP, ASCEND_JOB, POD_GROUP)),
    *(Permission(kind, "watch", POLLED) for kind in (NODE, POD, CONFIG_MAP, ASCEND_JOB, POD_GROUP)),
    Permission(VOLCANO_JOB, "list", "vcjobs are not looked after"),
    Permission(VOLCANO_JOB, "watch", POLLED),
    *(Permission(kind, "list", "they are not looked after") for kind in (STATEFUL_SET, DEPLOYMENT)),
    Permission(REPLICA_SET, "list", "Deployments are seen without their pods, and not looked after"),
    *(Permission(kind, "watch", POLLED) for kind in (STATEFUL_SET, DEPLOYMENT, REPLICA_SET)),
)
WRITES = (
    Permission(NODE, "get", TAINTS),
    Permission(NODE, "patch", TAINTS),
    Permission(POD, "get", "a deletion of which no answer came is repeated after a look at the list"),
    Permission(POD, "delete", "the recovery stays in `stop` with back-off and says so"),
    Permission(CONFIG_MAP, "get", "the boot table and `remain-retry-times` are not written"),
    Permission(CONFIG_MAP, "create", MEMORY),
    Permission(CONFIG_MAP, "update", MEMORY),
    Permission(CONFIG_MAP, "patch", "the boot table and `remain-retry-times` are not written"),
    Permission(EVENT, "create", TOLD),
    Permission(EVENT, "patch", TOLD),
    Permission(POD_GROUP, "get", GUARDED),
    Permission(POD_GROUP, "patch", GUARDED),
    *(Permission(kind, verb, BY_HAND) for kind in (ASCEND_JOB, VOLCANO_JOB) for verb in ("get", "patch")),
)
ASKED = (
    Permission(TOKEN_REVIEW, "create", "changes over HTTP are answered 503; `http.auth: off` needs neither"),
    Permission(ACCESS_REVIEW, "create", "as above"),
)
LABELS = (Permission(POD, "patch", "the label is not kept, and the log says so; nothing else changes"),)


def needed(settings: Settings, *, labels_itself: bool = False) -> tuple[Permission, ...]:
    """What a controller with these settings uses; `labels_itself`: it knows its own pod and labels it."""
    if settings.dry_run:
        return READS
    ours = settings.cluster.namespace
    asked = () if settings.http.auth is HttpAuth.OFF else ASKED
    leases = (Permission(LEASE, verb, FOLLOWS, ours) for verb in ("get", "create", "update"))
    leader = (Permission(POD, "patch", HIDDEN, ours),) if labels_itself else ()
    return (*READS, *WRITES, *leases, *leader, *asked, *(LABELS if settings.roles.label_pods else ()))


class Permissions:
    """Watches our own permissions; `missing` is as of the last look."""

    def __init__(
        self, needs: Sequence[Permission], *, client: Client, clock: Clock, log: Log, metrics: Metrics
    ) -> None:
        self._needs = tuple(needs)
        self._client = client
        self._clock = clock
        self._log = log
        self._metrics = metrics
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.missing: tuple[Permission, ...] = ()

    async def run(self) -> None:
        """Look until nothing is missing; what is missing and what returns is said once.

        A permission that is taken away later is named by whoever meets the refusal.
        """
        while True:
            try:
                self._tell(await self._look())
            except (ClusterError, InputError) as error:
                self._log.info("permissions cannot be asked for now", error=str(error))
            else:
                if not self.missing:
                    return
            await self._clock.sleep(SOON_S)

    async def _look(self) -> tuple[Permission, ...]:
        allowed = await asyncio.gather(*(self._may(each) for each in self._needs))
        return tuple(each for each, may in zip(self._needs, allowed, strict=True) if not may)

    async def _may(self, wanted: Permission) -> bool:
        kind = wanted.resource
        attributes = {"group": kind.group, "resource": kind.plural, "verb": wanted.verb}
        if wanted.namespace:
            attributes["namespace"] = wanted.namespace
        body = {
            "apiVersion": SELF_REVIEW.api_version,
            "kind": SELF_REVIEW.kind,
            "spec": {"resourceAttributes": attributes},
        }
        async with self._turns:
            raw = await self._client.create(SELF_REVIEW, "", orjson.dumps(body))
        try:
            answer = orjson.loads(raw)
            return bool(answer["status"]["allowed"])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise InputError("is no review", where=SELF_REVIEW.kind) from None

    def _tell(self, missing: tuple[Permission, ...]) -> None:
        for each in missing:
            if each not in self.missing:
                self._log.warning(
                    "permission is missing",
                    verb=each.verb,
                    resource=each.resource.plural,
                    group=each.resource.group,
                    namespace=each.namespace,
                    without_it=each.without,
                    advice="apply manifests/rbac.yaml; docs/permissions.md",
                )
        for each in self.missing:
            if each not in missing:
                self._log.info("permission is there again", verb=each.verb, resource=each.resource.plural)
        for each in self._needs:
            lacks = float(each in missing)
            self._metrics.permission_missing.labels(each.verb, each.resource.plural).set(lacks)
        self.missing = missing


__all__ = ["Permission", "Permissions", "needed"]
