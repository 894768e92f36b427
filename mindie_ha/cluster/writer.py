"""Every write to the cluster, in one place, so that none escapes the rules:

* the fence is asked right before each request leaves, retries included (`LeaseLost` stops it), and a request
  waits for its answer no longer than the fence is certain to stand;
* deletes carry the UID, updates the resourceVersion: what was not looked at is not touched;
* a write whose outcome is unknown (no answer, 5xx) is looked up before it is repeated;
* writes run in parallel up to a cap and below a rate; answers go to the store at once;
* with `dry_run` everything is logged and nothing is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import orjson

from mindie_ha.cluster.attempts import write_policy
from mindie_ha.cluster.client import Client, PatchKind
from mindie_ha.cluster.resources import CONFIG_MAP, EVENT, NODE, POD, POD_GROUP, Resource
from mindie_ha.cluster.slim import decode_json
from mindie_ha.cluster.unanswered import Unanswered
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.kit.logs import Log
from mindie_ha.kit.metrics import Metrics
from mindie_ha.kit.paces import Pace
from mindie_ha.model.errors import Conflict, Denied, InputError, MindieHaError, NotFound, Unreachable
from mindie_ha.model.ids import ObjectKey, PodUID
from mindie_ha.model.nodes import Taint
from mindie_ha.model.settings import ClusterSettings

Body = dict[str, Any]  # an object as decoded JSON
Amendment = Callable[[Body, Body], Body | None]
"""From an object and its metadata to a merge patch; None: it is so already."""


class Fence(Protocol):
    """Stops writes of a process that does not lead."""

    def guard(self) -> float:
        """Seconds for which a request may be under way; raises LeaseLost if we do not lead. Never awaits."""
        ...


class Answers(Protocol):
    """Takes the answers to our writes (the store)."""

    def apply_response(self, body: bytes) -> object:
        """Ignore what is unknown or older."""
        ...


class Written(StrEnum):
    """What became of a write."""

    DONE = "done"
    ALREADY = "already"  # it was so before
    DRY_RUN = "dry-run"  # not sent


def _always() -> None:
    """What needs no further permit."""


class Writer:
    """See the module. Every method raises ClusterError kinds or LeaseLost."""

    def __init__(
        self,
        *,
        client: Client,
        answers: Answers,
        fence: Fence,
        clock: Clock,
        entropy: Entropy,
        settings: ClusterSettings,
        log: Log,
        metrics: Metrics,
        dry_run: bool = False,
    ) -> None:
        self._client = client
        self._answers = answers
        self._gate = fence.guard
        self._clock = clock
        self._entropy = entropy
        self._log = log
        self._metrics = metrics
        self._dry_run = dry_run
        self._unanswered = Unanswered()
        self._parallel = asyncio.Semaphore(settings.parallel_writes)
        self._pace = Pace(clock=clock, per_s=settings.writes_per_s)

    async def delete_pod(
        self, key: ObjectKey, *, uid: PodUID, grace_s: int | None, permit: Callable[[], None] = _always
    ) -> Written:
        """Delete exactly this pod (0: at once, None: its own grace). Gone or replaced already is fine.

        `permit` is asked before each try and may raise, which ends it.
        """

        def gate() -> float:
            permit()
            return self._gate()

        options: Body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        sent = orjson.dumps(options)

        async def attempt(_unsure: bool) -> Written:
            if uid in self._unanswered and await self._deleted(key, uid, grace_s):
                return Written.DONE
            try:
                await self._send(lambda: self._client.delete(POD, key, sent, gate=gate))
            except (Unreachable, asyncio.CancelledError):
                self._unanswered.add(uid)
                raise
            except NotFound:
                return Written.ALREADY
            except Conflict:
                if await self._deleted(key, uid, None):
                    return Written.ALREADY  # another pod has this name now
                raise
            self._unanswered.settle(uid)
            return Written.DONE

        return await self._write("delete", POD, key, attempt, detail={"uid": uid, "grace_s": grace_s})

    async def set_taint(self, node: str, *, uid: str, taint: Taint, present: bool) -> Written:
        """Put our taint on a node or take it off; taints of others stay. NotFound if it was replaced."""

        def amendment(current: Body, _meta: Body) -> Body | None:
            taints = _taints_of(current)
            wanted = [
                one for one in taints if (one.get("key"), one.get("effect")) != (taint.key, taint.effect)
            ]
            if present:
                wanted.append(_taint(taint))
            if _same_taints(taints, wanted):
                return None
            return {"spec": {"taints": wanted or None}}

        detail = {"taint": taint.key, "present": present}
        return await self._amend(NODE, ObjectKey("", node), amendment, uid=uid or None, detail=detail)

    async def label_pod(self, key: ObjectKey, *, uid: PodUID, name: str, value: str | None) -> Written:
        """Set one label of exactly this pod, or take it off (None). Gone or replaced already is fine."""

        def amendment(_current: Body, meta: Body) -> Body | None:
            return None if _part(meta, "labels").get(name) == value else _labels({name: value})

        async def nothing() -> Written:
            return Written.ALREADY

        detail = {"uid": uid, "label": name, "value": value}
        return await self._amend(POD, key, amendment, uid=uid, detail=detail, where_absent=nothing)

    async def annotate_podgroup(self, key: ObjectKey, *, uid: str, name: str, value: str) -> Written:
        """Add an annotation. Conflict where it stands with another value: that is somebody else's mark."""

        def amendment(_current: Body, meta: Body) -> Body | None:
            found = _part(meta, "annotations").get(name)
            if found == value:
                return None
            if found is not None:
                raise ForeignMark(f"podgroup {key}: annotation {name} is {found!r}", status=409)
            return {"metadata": {"annotations": {name: value}}}

        detail = {"annotation": name, "value": value}
        return await self._amend(POD_GROUP, key, amendment, uid=uid, detail=detail)

    async def label_workload(
        self, resource: Resource, key: ObjectKey, *, uid: str, labels: Mapping[str, str], by: str
    ) -> Written:
        """Set labels of the owner of pods, as somebody asked. NotFound if it was made anew meanwhile."""

        def amendment(_current: Body, meta: Body) -> Body | None:
            present = _part(meta, "labels")
            stands = all(present.get(name) == value for name, value in labels.items())
            return None if stands else _labels(labels)

        detail = {"labels": dict(labels), "by": by}
        return await self._amend(resource, key, amendment, uid=uid, detail=detail)

    async def put_config_map(self, body: Body, *, resource_version: str) -> Written:
        """Compare and swap: create if `resource_version` is empty, else replace exactly that version.

        Conflict means somebody else wrote first; what they wrote has been read into the store.
        """
        meta = body["metadata"]
        key = ObjectKey(meta["namespace"], meta["name"])
        if resource_version:
            body = {**body, "metadata": {**meta, "resourceVersion": resource_version}}
        sent = orjson.dumps(body)

        async def attempt(unsure: bool) -> Written:
            if unsure and await self._holds(key, body):
                return Written.DONE
            try:
                if resource_version:
                    await self._send(lambda: self._client.replace(CONFIG_MAP, key, sent, gate=self._gate))
                else:
                    await self._send(
                        lambda: self._client.create(CONFIG_MAP, key.namespace, sent, gate=self._gate)
                    )
            except Conflict:
                if resource_version or not await self._relabelled(key, meta.get("labels") or {}):
                    await self.refresh(CONFIG_MAP, key)
                raise
            except NotFound as error:
                if not resource_version:
                    raise  # the namespace is missing
                raise Conflict(f"configmap {key} was deleted meanwhile", status=409) from error
            return Written.DONE

        return await self._write("put", CONFIG_MAP, key, attempt)

    async def change_config_map(
        self,
        key: ObjectKey,
        *,
        name: str,
        change: Callable[[str | None], str | None],
        labels: Mapping[str, str] | None = None,
    ) -> Written:
        """Read, change one key of `data`, write only if nothing moved meanwhile; created where absent.

        `change` gets the present text (None: absent) and returns the wanted one (None: leave it).
        """

        def amendment(current: Body, _meta: Body) -> Body | None:
            present = _part(current, "data").get(name)
            wanted = change(present)
            return None if wanted is None or wanted == present else {"data": {name: wanted}}

        async def first() -> Written:
            return await self._first(key, name, change(None), labels or {})

        return await self._amend(CONFIG_MAP, key, amendment, detail={"key": name}, where_absent=first)

    async def patch_config_map(
        self, key: ObjectKey, *, change: Callable[[Mapping[str, str]], Mapping[str, str | None]]
    ) -> Written:
        """Read, change some keys of `data`, write only if nothing moved meanwhile. NotFound where absent.

        `change` gets the present data and returns the keys that differ (None: take it away).
        """

        def amendment(current: Body, _meta: Body) -> Body | None:
            wanted = dict(change(_part(current, "data")))
            return {"data": wanted} if wanted else None

        return await self._amend(CONFIG_MAP, key, amendment)

    async def create_event(self, namespace: str, body: Body) -> str:
        """Create a Kubernetes Event; its name."""
        sent = orjson.dumps(body)
        key = ObjectKey(namespace, body["metadata"]["name"])

        async def attempt(_unsure: bool) -> Written:
            try:
                await self._send(lambda: self._client.create(EVENT, namespace, sent, gate=self._gate))
            except Conflict:
                return Written.ALREADY  # the name is random: it is ours, an answer was lost
            return Written.DONE

        await self._write("create", EVENT, key, attempt, quiet=True)
        return key.name

    async def patch_event(self, key: ObjectKey, body: Body) -> Written:
        """Raise the count of an Event."""

        async def attempt(_unsure: bool) -> Written:
            await self._patch(EVENT, key, body)
            return Written.DONE

        return await self._write("patch", EVENT, key, attempt, quiet=True)

    async def refresh(self, resource: Resource, key: ObjectKey) -> None:
        """Read an object into the store, so that the next look sees what a conflict was about."""
        try:
            self._answers.apply_response(await self._client.get(resource, key))
        except NotFound:
            return  # the watch tells

    async def confirm(self, resource: Resource, key: ObjectKey, *, uid: str) -> None:
        """Read an object into the store. Conflict where it is gone, or another one has its name."""
        try:
            found = (await self._heard(resource, key)).get("uid")
        except NotFound as error:
            raise Conflict(f"{resource.kind} {key} (uid {uid}) is gone", status=409) from error
        except Denied:
            return  # we may watch it and not read it: then what the watch shows has to do
        if found != uid:
            raise Conflict(f"{resource.kind} {key} is another one by now ({found})", status=409)

    # -- machinery -----------------------------------------------------------------------------------

    async def _write(
        self,
        verb: str,
        resource: Resource,
        key: ObjectKey,
        attempt: Callable[[bool], Awaitable[Written]],
        *,
        detail: Mapping[str, object] | None = None,
        again_on_conflict: bool = False,
        quiet: bool = False,
    ) -> Written:
        """Run `attempt(unsure)` under the retry policy; `unsure`: an earlier one may have happened."""
        log = self._log.bind(verb=verb, resource=resource.plural, object=str(key), **(detail or {}))
        if self._dry_run:
            log.info("dry run: not written")
            self._metrics.writes.labels(verb, resource.plural, Written.DRY_RUN).inc()
            return Written.DRY_RUN
        began_s, unsure, result = self._clock.monotonic(), False, "error"
        policy = write_policy(
            clock=self._clock,
            entropy=self._entropy,
            also=lambda error: again_on_conflict and type(error) is Conflict,
        )
        try:
            async for turn in policy:
                with turn:
                    self._gate()  # who does not lead does not even look
                    try:
                        written = await attempt(unsure)
                    except Unreachable:
                        unsure = True
                        raise
            result = written.value
        except MindieHaError as error:
            result = type(error).__name__
            log.warning("write failed", error=str(error))
            raise
        finally:
            self._metrics.writes.labels(verb, resource.plural, result).inc()
            spent_s = self._clock.monotonic() - began_s
            self._metrics.write_s.labels(verb, resource.plural).observe(spent_s)
        if not quiet:
            log.info("written", result=result)
        return written

    async def _amend(
        self,
        resource: Resource,
        key: ObjectKey,
        amendment: Amendment,
        *,
        uid: str | None = None,
        detail: Mapping[str, object] | None = None,
        where_absent: Callable[[], Awaitable[Written]] | None = None,
    ) -> Written:
        """Read, change, write only if nothing moved meanwhile; with `uid` exactly that object.

        `where_absent` speaks where the object is gone or another one has its name; without it: NotFound.
        """

        async def attempt(unsure: bool) -> Written:
            try:
                current, meta = await self._read(resource, key, uid=uid)
            except NotFound:
                if where_absent is None:
                    raise
                return await where_absent()
            patch = amendment(current, meta)
            if patch is None:
                return Written.DONE if unsure else Written.ALREADY
            await self._patch(resource, key, _onto(meta, patch))
            return Written.DONE

        return await self._write("patch", resource, key, attempt, detail=detail, again_on_conflict=True)

    async def _read(self, resource: Resource, key: ObjectKey, *, uid: str | None = None) -> tuple[Body, Body]:
        """An object and its metadata as they are now. NotFound where `uid` is given and another's."""
        where = f"{resource.kind} {key}"
        current = decode_json(await self._client.get(resource, key), where=where)
        meta = current.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("resourceVersion"), str):
            raise InputError("has no metadata.resourceVersion", where=where)
        if uid is not None and meta.get("uid") != uid:
            raise NotFound(f"{where} with UID {uid} is gone", status=404)
        return current, meta

    async def _heard(self, resource: Resource, key: ObjectKey) -> Body:
        """The metadata of an object as it is now; the store hears of it too."""
        raw = await self._client.get(resource, key)
        self._answers.apply_response(raw)
        return _part(decode_json(raw, where=f"{resource.kind} {key}"), "metadata")

    async def _send(self, request: Callable[[], Awaitable[bytes]]) -> None:
        async with self._parallel:
            await self._pace.turn()
            body = await request()
        self._answers.apply_response(body)

    async def _patch(self, resource: Resource, key: ObjectKey, patch: Body) -> None:
        sent = orjson.dumps(patch)
        await self._send(
            lambda: self._client.patch(resource, key, sent, kind=PatchKind.MERGE, gate=self._gate)
        )

    async def _first(self, key: ObjectKey, name: str, text: str | None, labels: Mapping[str, str]) -> Written:
        if text is None:
            return Written.ALREADY
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": dict(labels)},
            "data": {name: text},
        }
        sent = orjson.dumps(body)
        await self._send(lambda: self._client.create(CONFIG_MAP, key.namespace, sent, gate=self._gate))
        return Written.DONE

    async def _relabelled(self, key: ObjectKey, labels: Mapping[str, str]) -> bool:
        """Give a ConfigMap of ours back the labels that somebody took: without them no watch shows it, so
        we would try to create it for ever. What it holds is then read, and believed or refused."""
        try:
            _, meta = await self._read(CONFIG_MAP, key)
        except NotFound:
            return False
        present = _part(meta, "labels")
        lost = {name: value for name, value in labels.items() if present.get(name) != value}
        if not lost:
            return False
        self._log.warning(
            "labels of a ConfigMap of ours were taken away; put back", object=str(key), lost=lost
        )
        await self._patch(CONFIG_MAP, key, _onto(meta, _labels(lost)))
        return True

    async def _deleted(self, key: ObjectKey, uid: str, grace_s: int | None) -> bool:
        """Whether it is gone, replaced, or terminating at least as fast as wanted. The store hears it."""
        try:
            meta = await self._heard(POD, key)
        except NotFound:
            return True
        if meta.get("uid") != uid:
            return True
        if not meta.get("deletionTimestamp"):
            return False
        left_s = meta.get("deletionGracePeriodSeconds") or 0
        return grace_s is None or (isinstance(left_s, int) and left_s <= grace_s)

    async def _holds(self, key: ObjectKey, body: Body) -> bool:
        """Whether the ConfigMap stands as we tried to write it."""
        try:
            raw = await self._client.get(CONFIG_MAP, key)
        except NotFound:
            return False
        held = decode_json(raw, where=f"configmap {key}").get("data") == body.get("data")
        if held:
            self._answers.apply_response(raw)
        return held


class ForeignMark(Conflict):
    """Another controller's value stands where ours should go; repeating cannot help."""


def _part(content: Body, name: str) -> Body:
    """An object inside an object; empty where it is absent or no object."""
    found = content.get(name)
    return found if isinstance(found, dict) else {}


def _labels(labels: Mapping[str, str | None]) -> Body:
    return {"metadata": {"labels": dict(labels)}}


def _onto(meta: Body, patch: Body) -> Body:
    """`patch` for exactly the version that was read."""
    version = {"resourceVersion": meta["resourceVersion"]}
    return {**patch, "metadata": {**version, **patch.get("metadata", {})}}


def _taints_of(node: Body) -> list[Body]:
    found = _part(node, "spec").get("taints") or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError("spec.taints is no list of taints", where="node")
    return found


def _taint(taint: Taint) -> Body:
    body: Body = {"key": taint.key, "effect": taint.effect}
    return body | ({"value": taint.value} if taint.value else {})


def _same_taints(left: list[Body], right: list[Body]) -> bool:
    def shape(taints: list[Body]) -> set[tuple[object, object, object]]:
        return {(one.get("key"), one.get("effect"), one.get("value") or "") for one in taints}

    return shape(left) == shape(right)


__all__ = ["Answers", "Fence", "ForeignMark", "Writer", "Written"]
