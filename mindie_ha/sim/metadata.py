"""What every object's metadata must look like, and how labels of the wrong JSON type are refused.

Types are a 400 with Go's decoder wording (that is what users see when YAML makes a boolean of an unquoted
`on`); values are causes for a 422.
"""

from __future__ import annotations

import re
from typing import Any

from mindie_ha.sim.resources import Resource
from mindie_ha.sim.statuses import Cause, StatusError, bad_request

Object = dict[str, Any]  # one Kubernetes object as decoded JSON

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PATH_NAME = re.compile(r"[^/%]+")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
ANNOTATIONS_BYTES = 256 * 1024

_STRINGS = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)
_GO_KINDS = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}


def check_types(obj: Object, resource: Resource) -> None:
    """Refuse metadata that a typed decoder could not read; raises StatusError 400."""
    meta = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    if not isinstance(meta, dict):
        raise _cannot_unmarshal(resource, meta, "ObjectMeta", "metadata", "v1.ObjectMeta")
    for field in _STRINGS:
        if not isinstance(meta.get(field, ""), str):
            raise _cannot_unmarshal(resource, meta[field], "ObjectMeta", f"metadata.{field}", "string")
    for field in ("labels", "annotations"):
        pairs = meta.get(field, {})
        if not isinstance(pairs, dict):
            raise _cannot_unmarshal(resource, pairs, "ObjectMeta", f"metadata.{field}", "map[string]string")
        for value in pairs.values():
            if not isinstance(value, str):
                raise _cannot_unmarshal(resource, value, "ObjectMeta", f"metadata.{field}", "string")
    _check_lists(meta, resource)


def _check_lists(meta: Object, resource: Resource) -> None:
    for field, item, go_type in (
        ("finalizers", str, "[]string"),
        ("ownerReferences", dict, "[]v1.OwnerReference"),
        ("managedFields", dict, "[]v1.ManagedFieldsEntry"),
    ):
        values = meta.get(field, [])
        if not isinstance(values, list):
            raise _cannot_unmarshal(resource, values, "ObjectMeta", f"metadata.{field}", go_type)
        for value in values:
            if not isinstance(value, item):
                raise _cannot_unmarshal(resource, value, "ObjectMeta", f"metadata.{field}", go_type[2:])
    for owner in meta.get("ownerReferences", []):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(key, ""), str):
                field = f"metadata.ownerReferences.{key}"
                raise _cannot_unmarshal(resource, owner[key], "OwnerReference", field, "string")


def _cannot_unmarshal(
    resource: Resource, value: object, struct: str, field: str, go_type: str
) -> StatusError:
    kind = _GO_KINDS.get(type(value), "null")
    if resource.custom and field != "metadata":
        field = field.removeprefix("metadata.")  # of a custom object the server decodes metadata on its own
    return bad_request(
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: '
        f"cannot unmarshal {kind} into Go struct field {struct}.{field} of type {go_type}"
    )


def check_values(obj: Object, resource: Resource) -> list[Cause]:
    """Causes for names, labels, annotations and owner references that may not be stored."""
    meta = obj["metadata"]
    causes = _check_name(meta.get("name", ""), resource)
    for key, value in (meta.get("labels") or {}).items():
        causes += _check_key(key, "metadata.labels")
        if len(value) > 63:
            causes.append(_invalid("metadata.labels", value, "must be no more than 63 characters"))
        if not _LABEL_VALUE.fullmatch(value):
            causes.append(_invalid("metadata.labels", value, _LABEL_VALUE_TEXT))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        causes += _check_key(key.lower(), "metadata.annotations")
    if sum(len(key) + len(value) for key, value in annotations.items()) > ANNOTATIONS_BYTES:
        text = f"Too long: may not be more than {ANNOTATIONS_BYTES} bytes"
        causes.append(Cause("FieldValueTooLong", text, "metadata.annotations"))
    owners = meta.get("ownerReferences") or []
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        text = f"Only one reference can have Controller set to true. Found {len(controllers)}"
        causes.append(_invalid("metadata.ownerReferences", str(controllers), text))
    for at, owner in enumerate(owners):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                path = f"metadata.ownerReferences[{at}].{key}"
                causes.append(Cause("FieldValueInvalid", f'Invalid value: "": {key} must not be empty', path))
    return causes


def _check_name(name: str, resource: Resource) -> list[Cause]:
    if not name:
        return [
            Cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")
        ]
    limit, pattern = 253, _SUBDOMAIN
    if resource.kind in ("Namespace", "Service"):
        limit, pattern = 63, _LABEL_NAME
    elif resource.group == "rbac.authorization.k8s.io":
        pattern = _PATH_NAME
    if len(name) > limit:
        return [_invalid("metadata.name", name, f"must be no more than {limit} characters")]
    return [] if pattern.fullmatch(name) else [_invalid("metadata.name", name, _SUBDOMAIN_TEXT)]


def _check_key(key: str, field: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return [_invalid(field, key, f"prefix part {_SUBDOMAIN_TEXT}")]
    if not name or len(name) > 63 or not _QUALIFIED.fullmatch(name):
        return [_invalid(field, key, _QUALIFIED_TEXT)]
    return []


def _invalid(field: str, value: str, text: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {text}', field)
