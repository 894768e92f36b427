"""Files -> the Kubernetes objects in them: YAML with any number of documents, JSON, and `kind: List`.

Every file is hostile: too large, no text, no YAML, nested without end. Each of these is one `InputError`; an
object that is none (no mapping, no kind) is named by its place in the file and refused in the same way.
Each object knows its document and, unless the file is large, its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from mindie_ha.intake.jobs.places import Places
from mindie_ha.model.errors import InputError

MAX_FILE = 64 * 1024 * 1024
MAX_OBJECTS = 10_000
MAX_DEPTH = 8  # lists in lists
MAX_FILE_WITH_LINES = 4 * 1024 * 1024  # above it the parse tree would cost more than the lines are worth

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Subject:
    """One object of a file."""

    file: str
    kind: str
    namespace: str
    name: str
    body: Mapping[str, object]
    document: int = 1
    places: Places = field(default_factory=Places)

    @property
    def title(self) -> str:
        """How people name it."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.file}: {self.kind} {key}"

    @property
    def labels(self) -> Mapping[str, object]:
        """`metadata.labels`; empty where there are none, or none that can be read."""
        return _mapping(_mapping(self.body.get("metadata")).get("labels"))

    @property
    def data(self) -> Mapping[str, object]:
        """`data` of a ConfigMap as written, values of any type."""
        return _mapping(self.body.get("data"))


def read(text: str, *, file: str) -> list[Subject]:
    """The objects in `text`. Raises InputError."""
    if len(text) > MAX_FILE:
        raise InputError(f"{len(text)} characters are more than {MAX_FILE}", where=file)
    try:
        documents = list(_documents(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark is not None else "somewhere"
        problem = getattr(error, "problem", None) or "bad syntax"
        advice = "give what `kubectl get … -o yaml` or `-o json` prints"
        raise InputError(f"neither YAML nor JSON: {problem} in {line}", where=file, advice=advice) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"neither YAML nor JSON: {error}", where=file) from None
    found: list[Subject] = []
    for number, (document, places) in enumerate(documents, 1):
        if document is not None:
            at = _At(file, number, f"document {number}", places)
            for subject in _objects(document, at=at, depth=0):
                found.append(subject)  # one by one: with aliases a small file may hold no end of them
                if len(found) > MAX_OBJECTS:
                    raise InputError(f"more than {MAX_OBJECTS} objects", where=file)
    if not found:
        raise InputError("holds no object", where=file)
    return found


@dataclass(frozen=True, slots=True)
class _At:
    """Where an object of a file stands."""

    file: str
    document: int
    place: str
    places: Places

    def item(self, number: int) -> _At:
        below = self.places.below("items").below(number)
        return _At(self.file, self.document, f"{self.place}, item {number + 1}", below)


def _documents(text: str) -> Iterator[tuple[object, Places]]:
    with_lines = len(text) <= MAX_FILE_WITH_LINES
    loader = Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield loader.construct_document(node), Places(node if with_lines else None)
    finally:
        loader.dispose()


def _objects(value: object, *, at: _At, depth: int) -> Iterator[Subject]:
    where = f"{at.file}: {at.place}"
    if not isinstance(value, dict):
        raise InputError("is no Kubernetes object", where=where, advice="an object has a kind")
    kind = value.get("kind")
    items = value.get("items")
    if isinstance(items, list) and isinstance(kind, str) and kind.endswith("List"):
        if depth >= MAX_DEPTH:
            raise InputError("lists in lists without end", where=where)
        for number, item in enumerate(items):
            yield from _objects(item, at=at.item(number), depth=depth + 1)
        return
    if not isinstance(kind, str) or not kind:
        table = "server_group_list" in value or "server_list" in value
        bare = "a bare rank table is looked at by `mindie-ha ranktable show FILE`"
        raise InputError("has no kind", where=where, advice=bare if table else "keep the line `kind: …`")
    metadata = _mapping(value.get("metadata"))
    yield Subject(
        file=at.file,
        kind=kind[:64],
        namespace=_text(metadata.get("namespace")),
        name=_text(metadata.get("name")) or f"({at.place})",
        body=_mapping(value),
        document=at.document,
        places=at.places,
    )


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(key, str)}


def _text(value: object) -> str:
    return value[:253] if isinstance(value, str) else ""
