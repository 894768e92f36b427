"""Bodies of requests: JSON or YAML bytes to objects, and what makes an object acceptable on a path.

Hostile by assumption: size, nesting, encodings and types are checked here once, and the answer is one of
the API server's own refusals.
"""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from mindie_ha.sim import protobuf
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.metadata import check_types
from mindie_ha.sim.statuses import Object, StatusError, bad_request, unsupported_media

BODY_BYTES = 3 * 1024 * 1024  # as the API server's own limit
JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
_DEPTH = 200


class _Loader(yaml.CSafeLoader):
    """YAML without timestamps, which JSON has not."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def media_type(header: str) -> str:
    """The media type of a content-type header, without parameters."""
    return header.partition(";")[0].strip().lower()


def decode(raw: bytes, content_type: str) -> Any:
    """Bytes to JSON values; raises StatusError 400, 413 or 415."""
    if len(raw) > BODY_BYTES:
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_BYTES}")
    kind = media_type(content_type)
    if kind in (YAML, APPLY, "text/yaml"):
        return _decode_yaml(raw)
    if kind == protobuf.MEDIA_TYPE:
        return _decode_protobuf(raw)
    if kind not in ("", "*/*", JSON):
        raise unsupported_media((JSON, YAML, protobuf.MEDIA_TYPE))
    try:
        value = orjson.loads(raw)
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if b"null" in raw or raw.count(b"[") + raw.count(b"{") > _DEPTH:
        value = _clean(value, 0)
    return value


def _decode_protobuf(raw: bytes) -> Any:
    try:
        return protobuf.decode(raw)
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def _decode_yaml(raw: bytes) -> Any:
    try:
        value = yaml.load(raw, Loader=_Loader)  # noqa: S506 - a safe loader
        return _clean(orjson.loads(orjson.dumps(value)), 0)
    except (yaml.YAMLError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())
        raise bad_request(f"error converting YAML to JSON: {text}") from None
    except RecursionError:
        raise bad_request("error converting YAML to JSON: nested too deeply") from None


def _clean(value: Any, depth: int) -> Any:
    """Without null members, which typed decoders drop; refuses absurd nesting."""
    if depth > _DEPTH:
        raise bad_request("json: nested too deeply")
    if isinstance(value, dict):
        return {key: _clean(item, depth + 1) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    return value


def decode_patch(raw: bytes) -> Any:
    """A JSON or merge patch, where null means something; raises StatusError 400 or 413."""
    if len(raw) > BODY_BYTES:
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_BYTES}")
    try:
        value = orjson.loads(raw)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    _clean(value, 0)
    return value


def check_object(obj: Any, route: Route) -> Object:
    """The body as an object of the path's kind; fills kind and namespace in; raises StatusError 400."""
    resource = route.resource
    if not isinstance(obj, dict):
        raise bad_request(f"the body must be one {resource.kind} object")
    for field, expected in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        given = obj.setdefault(field, expected)
        if given != expected:
            raise bad_request(
                f"{obj['kind']} cannot be handled as a {resource.kind}: the {field} of the provided object "
                f"({given}) does not match the expected {field} ({expected})"
            )
    check_types(obj, resource)
    meta = obj["metadata"]
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", route.namespace) != route.namespace:
        raise bad_request(
            f"the namespace of the provided object does not match the namespace sent on the request: "
            f"{meta['namespace']} != {route.namespace}"
        )
    if route.name and not meta.get("name"):
        raise bad_request("name must be provided")
    if route.name and meta["name"] != route.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({route.name})"
        )
    return obj
