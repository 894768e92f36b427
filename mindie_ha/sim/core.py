"""What every part of the API server shares: clock, entropy, store, kinds, watches, descriptions.

One record handed around instead of a class with everything in it; the parts (reading, writing, deleting,
subresources) are functions on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.sim.audits import Audit, AuditEntry
from mindie_ha.sim.documents import Documents
from mindie_ha.sim.kinds import Kinds
from mindie_ha.sim.resources import Resource
from mindie_ha.sim.schemas import strict_error
from mindie_ha.sim.statuses import (
    Cause,
    FieldCause,
    Object,
    bad_options,
    bad_request,
    invalid,
    not_found,
    qualified,
)
from mindie_ha.sim.storage import Store, Stored
from mindie_ha.sim.watches import WatchHub

_ALWAYS_DECODED = ("kind", "apiVersion", "metadata")


@dataclass(frozen=True, slots=True)
class Core:
    """The shared parts of one server."""

    clock: Clock
    entropy: Entropy
    store: Store
    kinds: Kinds
    hub: WatchHub
    documents: Documents
    audit: Audit

    def record(
        self,
        verb: str,
        resource: Resource,
        stored: Stored,
        *,
        user_agent: str,
        code: int = 200,
        dry_run: bool = False,
    ) -> None:
        """Write one object's entry into the audit log."""
        meta = stored.obj["metadata"]
        self.audit.append(
            AuditEntry(
                time=self.clock.wall(),
                verb=verb,
                resource=qualified(resource),
                namespace=meta.get("namespace", ""),
                name=meta["name"],
                subresource="",
                uid=meta.get("uid", ""),
                user_agent=user_agent,
                code=code,
                dry_run=dry_run,
            )
        )

    def now_text(self, *, after_s: float = 0.0) -> str:
        """Wall time (plus `after_s`) as metadata carries it: RFC 3339, whole seconds."""
        moment = datetime.fromtimestamp(self.clock.wall() + after_s, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def existing(self, resource: Resource, namespace: str, name: str) -> Stored:
        """The object; raises StatusError 404."""
        stored = self.store.get(resource, namespace, name)
        if stored is None:
            raise not_found(resource, name)
        return stored

    def decode(
        self, resource: Resource, obj: Object, options: WriteOptions, *, old: Object | None = None
    ) -> Object:
        """The object as it is stored; StatusError 400 on wrong types, and on unknown fields where asked.

        What equals `old`, the stored version that it replaces, is known to be right and not looked at again.
        """
        fresh = {
            field: value
            for field, value in obj.items()
            if old is None or field in _ALWAYS_DECODED or old.get(field) != value
        }
        message = self.documents.decode_error(resource, fresh)
        if message:
            raise bad_request(message)
        if options.strict:
            unknown = self.documents.unknown_fields(resource, fresh)
            if unknown:
                raise bad_request(strict_error(resource, unknown))
        kept = self.documents.canonical(resource, fresh)
        return {field: kept.get(field, obj[field]) for field in obj if field in kept or field not in fresh}

    def check(self, resource: Resource, obj: Object, causes: Sequence[FieldCause]) -> None:
        """Run validation; raises StatusError 422 with every cause."""
        causes = [*causes, *self.documents.broken_rules(resource, obj)]
        if causes:
            raise invalid(resource, obj["metadata"].get("name", ""), causes)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The query parameters of a write."""

    dry_run: bool = False
    manager: str = "unknown"
    force: bool = False
    strict: bool = False
    named: bool = False  # the client gave the manager itself

    @classmethod
    def read(cls, query: Mapping[str, str], user_agent: str, *, method: str = "POST") -> WriteOptions:
        """From a request; raises StatusError 422 on a dryRun that is not `All`."""
        dry_run = query.get("dryRun", "")
        if dry_run not in ("", "All"):
            text = f'Unsupported value: []string{{"{dry_run}"}}: supported values: "All"'
            kind = _OPTIONS.get(method, "CreateOptions")
            raise bad_options(kind, Cause("FieldValueNotSupported", text, "dryRun"))
        manager = query.get("fieldManager") or user_agent.split("/", 1)[0] or "unknown"
        force = query.get("force", "").lower() in ("true", "1")
        strict = query.get("fieldValidation") == "Strict"
        return cls(bool(dry_run), manager[:128], force, strict, bool(query.get("fieldManager")))


_OPTIONS = {"PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
NO_OPTIONS = WriteOptions()
NAMESPACES: Resource = next(each for each in Kinds().all() if each.kind == "Namespace")


def same(left: Stored, right: Object) -> bool:
    """Whether nothing changed that makes a new version (who owns which field alone does not)."""
    old = {**left.obj, "metadata": {**left.obj["metadata"], "managedFields": None}}
    new = {**right, "metadata": {**right["metadata"], "managedFields": None}}
    return old == new


def precondition_failure(stored: Stored, preconditions: Mapping[str, object]) -> str:
    """Why `preconditions` (uid, resourceVersion) do not hold; empty where they do."""
    meta = stored.obj["metadata"]
    uid, version = preconditions.get("uid"), preconditions.get("resourceVersion")
    if uid and uid != meta["uid"]:
        return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}"
    if version and version != meta["resourceVersion"]:
        have = meta["resourceVersion"]
        return (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {have}"
        )
    return ""
