"""What a Lease says, and what we write into one. Pure.

Only the holder, how long it holds and *whether the record changed* count. Its times are written for people
(`kubectl get lease -o yaml`, `status --kubeconfig`) and decide nothing: two clocks need not agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from mindie_ha.cluster.resources import LEASE
from mindie_ha.cluster.slim import decode_json
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.settings import MAX_LEASE_S

Body = dict[str, Any]  # a Lease as decoded JSON


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease as the API server holds it."""

    holder: str = ""  # empty: released
    duration_s: int = 0  # 0: it does not say, or nothing that one of us writes
    version: str = ""
    spec: Body = field(default_factory=dict)
    body: Body = field(default_factory=dict)

    @classmethod
    def read(cls, raw: bytes) -> LeaseRecord:
        """Take an answer apart. Raises InputError where it is no object."""
        body = decode_json(raw, where="the Lease")
        spec, meta = _part(body, "spec"), _part(body, "metadata")
        holder, duration = spec.get("holderIdentity"), spec.get("leaseDurationSeconds")
        sane = isinstance(duration, int) and 0 < duration <= MAX_LEASE_S
        return cls(
            holder=holder if isinstance(holder, str) else "",
            duration_s=duration if sane and isinstance(duration, int) else 0,
            version=str(meta.get("resourceVersion") or ""),
            spec=spec,
            body=body,
        )

    @property
    def renewed_at_s(self) -> float | None:
        """When its holder says it renewed it, for people; None where it does not say."""
        found = self.spec.get("renewTime")
        try:
            return datetime.fromisoformat(found).timestamp() if isinstance(found, str) else None
        except (ValueError, OverflowError):
            return None


def written(
    before: LeaseRecord | None, *, key: ObjectKey, holder: str, duration_s: int, now_s: float
) -> bytes:
    """The Lease as `holder` writes it over `before`; what others put there (labels, owners) stays."""
    spec: Body = dict(before.spec) if before is not None else {}
    changed = before is None or before.holder != holder
    spec |= {"holderIdentity": holder, "leaseDurationSeconds": duration_s, "renewTime": _stamp(now_s)}
    if changed and holder:
        spec["acquireTime"] = _stamp(now_s)
        spec["leaseTransitions"] = _transitions(spec) + (before is not None)
    if before is not None:
        return orjson.dumps({**before.body, "spec": spec})
    meta = {"namespace": key.namespace, "name": key.name}
    return orjson.dumps({"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": meta, "spec": spec})


def _transitions(spec: Body) -> int:
    found = spec.get("leaseTransitions")
    return found if isinstance(found, int) and found >= 0 else 0


def _part(content: Body, name: str) -> Body:
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


__all__ = ["LeaseRecord", "written"]
