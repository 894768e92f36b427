"""Ledgers as ConfigMaps: names, encoding, and decoding that never guesses.

`ledger.json` is canonical JSON, `digest` its SHA-256: an edit by hand, a truncation or an unknown schema
version is `LedgerUnreadable`, and its owner is then only observed; a ledger is never "started from zero"
because it could not be read. Names fit the API's 253 characters: long ones are cut and end in a hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from mindie_ha.cluster import migrations
from mindie_ha.cluster.slim import SlimConfigMap
from mindie_ha.cluster.sources import LABEL_LEDGER
from mindie_ha.model.errors import LedgerUnreadable
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pauses import PauseLedger
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.recoveries import Frozen
from mindie_ha.model.workloads import Workload

LEDGER_KEY = "ledger.json"
DIGEST_KEY = "digest"
ANNOTATION_JOB_ID = "mindie-ha.io/job-id"
ANNOTATION_NODE = "mindie-ha.io/node"
ANNOTATION_WORKLOAD = "mindie-ha.io/workload"
MAX_NAME = 253
MAX_BYTES = 900 << 10  # a ConfigMap holds 1 MiB; a job of 1,500 pods of 8 cards needs this after ten attempts
MAX_SERVICE_BYTES = 1000 << 10
MAX_PUBLIC_BYTES = 1000 << 10

LedgerT = TypeVar("LedgerT", bound=Frozen)


def workload_ledger_key(workload: Workload) -> ObjectKey:
    """Where a workload's memory lives: beside it."""
    name = fitting(f"mindie-ha-ledger-{workload.kind.lower()}-{workload.key.name}")
    return ObjectKey(workload.key.namespace, name)


def service_ledger_key(namespace: str, job_id: str) -> ObjectKey:
    """Where a service's table and ids live; the name survives any jobID."""
    return ObjectKey(namespace, f"mindie-ha-service-{hashlib.sha256(job_id.encode()).hexdigest()[:10]}")


def node_ledger_key(namespace: str, node: str) -> ObjectKey:
    """Where a node's isolations live: in our namespace."""
    return ObjectKey(namespace, fitting(f"mindie-ha-node-{node}"))


def public_ledger_key(namespace: str) -> ObjectKey:
    """Where all public faults are remembered: in our namespace."""
    return ObjectKey(namespace, "mindie-ha-public-faults")


def pauses_key(namespace: str) -> ObjectKey:
    """Where every pause is remembered: in our namespace."""
    return ObjectKey(namespace, "mindie-ha-pauses")


def mark_key(namespace: str, node: str) -> ObjectKey:
    """Where we tell ClusterD which cards of a node to keep free."""
    return ObjectKey(namespace, fitting(f"mindie-ha-mark-{node}"))


def fitting(name: str, *, limit: int = MAX_NAME) -> str:
    """`name`, or where it is too long its beginning and a hash of all of it."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 11].rstrip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def encode(ledger: Frozen, *, limit: int) -> dict[str, str]:
    """The ConfigMap's `data`; LedgerUnreadable where it would not fit (it could not be read back)."""
    body = orjson.dumps(ledger.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
    if len(body) > limit:
        raise LedgerUnreadable(f"a ledger of {len(body)} bytes is above the bound of {limit}; not written")
    return {LEDGER_KEY: body.decode(), DIGEST_KEY: hashlib.sha256(body).hexdigest()}


def decode(config_map: SlimConfigMap, model: type[LedgerT], *, limit: int) -> LedgerT:
    """The ledger in a ConfigMap; LedgerUnreadable says what is wrong and how to re-arm."""
    where = f"ConfigMap {config_map.key}"
    text = config_map.data.get(LEDGER_KEY)
    if text is None:
        raise _unreadable(where, f"has no key {LEDGER_KEY}")
    body = text.encode()
    if len(body) > limit:
        raise _unreadable(where, f"{len(body)} bytes are above the bound of {limit}")
    if hashlib.sha256(body).hexdigest() != config_map.data.get(DIGEST_KEY):
        raise _unreadable(where, "the digest does not fit: it was changed by somebody else")
    try:
        upgraded = migrations.upgraded(model, body)
        return model.model_validate_json(upgraded)
    except LedgerUnreadable as error:
        raise _unreadable(where, str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise _unreadable(where, f"{field}: {first['msg']}") from error


def manifest(
    key: ObjectKey,
    ledger: Frozen,
    *,
    label: str,
    annotations: dict[str, str],
    owners: Sequence[dict[str, Any]],
    limit: int,
) -> dict[str, Any]:
    """The whole ConfigMap, ready to be created or, with a resourceVersion added, replaced."""
    metadata: dict[str, Any] = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {LABEL_LEDGER: label, "app.kubernetes.io/managed-by": "mindie-ha"},
        "annotations": annotations,
    }
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": encode(ledger, limit=limit),
    }


def kind_of(config_map: SlimConfigMap) -> tuple[type[Frozen], int] | None:
    """Which ledger a ConfigMap holds by its label, and its bound in bytes; None for an unknown label."""
    kinds: dict[str, tuple[type[Frozen], int]] = {
        "workload": (WorkloadLedger, MAX_BYTES),
        "service": (ServiceLedger, MAX_SERVICE_BYTES),
        "node": (NodeLedger, MAX_BYTES),
        "pauses": (PauseLedger, MAX_BYTES),
        "public-faults": (PublicFaultLedger, MAX_PUBLIC_BYTES),
    }
    return kinds.get(config_map.metadata.labels.get(LABEL_LEDGER, ""))


def _unreadable(where: str, what: str) -> LedgerUnreadable:
    return LedgerUnreadable(f"{where}: {what}; restore it, or delete it to forget what was done")


__all__ = [
    "ANNOTATION_JOB_ID",
    "ANNOTATION_NODE",
    "ANNOTATION_WORKLOAD",
    "MAX_BYTES",
    "MAX_PUBLIC_BYTES",
    "MAX_SERVICE_BYTES",
    "decode",
    "encode",
    "fitting",
    "kind_of",
    "manifest",
    "mark_key",
    "node_ledger_key",
    "pauses_key",
    "public_ledger_key",
    "service_ledger_key",
    "workload_ledger_key",
]
