"""Regenerate `mindie_ha/sim/data/protobuf.json.gz`: field numbers of Kubernetes messages that kubectl sends.

Since 1.32 kubectl sends the bodies of its typed commands (`create`, `drain`, `auth`) as protobuf only. A
kubectl binary carries the descriptors of every Kubernetes message (generated.proto, Apache-2.0); this reads
them from there: `python tools/build_protobuf.py /usr/bin/kubectl`. Kept: number, JSON name and type of each
field that the served kinds reach. JSON puts the fields of an embedded struct into its parent; such a field is
marked inline, and known by its name (the struct's own) and by not being a property in the published schema.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mindie_ha.sim import definitions  # noqa: E402 - found through the path above

EXTRA_ROOTS = {
    "authorization.k8s.io/v1 SelfSubjectAccessReview": "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    "authorization.k8s.io/v1 SubjectAccessReview": "io.k8s.api.authorization.v1.SubjectAccessReview",
    "autoscaling/v1 Scale": "io.k8s.api.autoscaling.v1.Scale",
}
SCALARS = {
    FieldDescriptorProto.TYPE_STRING: "string",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_INT32: "int",
    FieldDescriptorProto.TYPE_INT64: "int",
    FieldDescriptorProto.TYPE_DOUBLE: "double",
}


def main() -> int:
    messages = {name: message for file in descriptors(Path(sys.argv[1])) for name, message in named(file)}
    roots = dict(EXTRA_ROOTS)
    for name, schema in definitions.builtin().items():
        for kind in schema.get(definitions.GVK, ()):
            api_version = "/".join(part for part in (kind["group"], kind["version"]) if part)
            if name in messages:
                roots[f"{api_version} {kind['kind']}"] = name
    table: dict[str, Any] = {}
    waiting = list(roots.values())
    while waiting:
        name = waiting.pop()
        if name not in table:
            table[name] = fields(name, messages)
            waiting += [kind for _, kind, *_ in table[name].values() if kind in messages]
    packed = json.dumps({"roots": roots, "messages": table}, separators=(",", ":"), sort_keys=True).encode()
    target = ROOT / "mindie_ha" / "sim" / "data" / "protobuf.json.gz"
    target.write_bytes(gzip.compress(packed, mtime=0))
    print(f"{len(table)} messages, {target.stat().st_size} bytes")
    return 0


def descriptors(binary: Path) -> Iterator[FileDescriptorProto]:
    """Every gzipped file descriptor inside a Go binary."""
    content = binary.read_bytes()
    for match in re.finditer(rb"\x1f\x8b\x08\x00{5}", content):
        try:
            raw = zlib.decompressobj(31).decompress(content[match.start() : match.start() + 400_000])
            file = FileDescriptorProto.FromString(raw)
        except (zlib.error, DecodeError):
            continue
        if file.name.startswith("k8s.io/"):
            yield file


def named(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    """Messages under the names that the published schemas use."""
    for message in file.message_type:
        yield published(f"{file.package}.{message.name}"), message


def published(name: str) -> str:
    return name.lstrip(".").replace("k8s.io.", "io.k8s.", 1)


def fields(name: str, messages: dict[str, DescriptorProto]) -> dict[str, list[Any]]:
    """Number to [JSON name, type, shape]; shape: one, list, map or inline."""
    message = messages[name]
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    properties = definitions.builtin().get(name, {}).get("properties")
    found: dict[str, list[Any]] = {}
    for field in message.field:
        entry = entries.get(field.type_name.rsplit(".", 1)[-1])
        if entry is not None:
            found[str(field.number)] = [field.name, type_name(entry.field[1]), "map"]
            continue
        kind = type_name(field)
        many = field.label == FieldDescriptorProto.LABEL_REPEATED
        embedded = (
            properties is not None
            and field.name not in properties
            and kind.lower().endswith(field.name.lower())
            and not many
        )
        found[str(field.number)] = [field.name, kind, "list" if many else "inline" if embedded else "one"]
    return found


def type_name(field: FieldDescriptorProto) -> str:
    return SCALARS.get(field.type) or published(field.type_name)


if __name__ == "__main__":
    sys.exit(main())
