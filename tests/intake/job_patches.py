"""Small changes to clean manifests, from which the broken ones are made.

A place is written as words with blanks between them (`metadata labels fault-scheduling`), list items as
numbers. `None` as value removes the key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mindie_ha.intake.lints.subjects import Subject, read

Body = dict[str, Any]
Patch = Callable[[Body], None]
DATA = "tests/data/jobs"
MASTER = "spec replicaSpecs Master"
WORKER = "spec replicaSpecs Worker"
SCHEDULER = "spec replicaSpecs Scheduler"
MAIN = f"{MASTER} template spec containers 0"
GANG = "spec runPolicy schedulingPolicy"
LABELS = "metadata labels"
NOTES = "metadata annotations"


@dataclass(frozen=True)
class Variant:
    """One broken manifest. `kind` picks the object of a file with several."""

    code: str
    base: str
    patch: Patch
    note: str = ""
    kind: str = "AscendJob"

    @property
    def name(self) -> str:
        """Its test id."""
        return f"{self.code}-{self.note}" if self.note else self.code

    def broken(self) -> Subject:
        """The object after the change. Shared parts of the YAML are separate before it."""
        return patched(self.base, self.patch, kind=self.kind)


def clean(base: str, *, kind: str) -> Subject:
    """The base itself."""
    path = f"{DATA}/clean_{base}.yaml"
    with open(path, encoding="utf-8") as file:
        (subject,) = (one for one in read(file.read(), file=path) if one.kind == kind)
    return subject


def patched(base: str, patch: Patch, *, kind: str) -> Subject:
    """The base after `patch`."""
    subject = clean(base, kind=kind)
    body = unshared(subject.body)
    patch(body)
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return Subject(
        file=subject.file,
        kind=subject.kind,
        namespace="x",
        name=str(name or "(nameless)"),
        body=body,
        places=subject.places,
    )


def unshared(value: Any) -> Any:
    """A copy in which no two places are one object, as YAML aliases make them."""
    if isinstance(value, dict):
        return {key: unshared(item) for key, item in value.items()}
    return [unshared(item) for item in value] if isinstance(value, list) else value


def put(place: str, value: object) -> Patch:
    """Set or, with None, remove one value."""

    def patch(body: Body) -> None:
        *above, last = place.split(" ")
        holder: Any = body
        for part in above:
            if isinstance(holder, list):
                holder = holder[int(part)]
            else:
                holder = holder.setdefault(part, {}) if isinstance(holder, dict) else holder
        if value is None:
            del holder[last]
        else:
            holder[int(last) if isinstance(holder, list) else last] = value

    return patch


def all_of(*patches: Patch) -> Patch:
    """Several changes."""

    def patch(body: Body) -> None:
        for one in patches:
            one(body)

    return patch


def label(name: str, value: object) -> Patch:
    """A label of the job."""
    return put(f"{LABELS} {name}", value)


def note(name: str, value: object) -> Patch:
    """An annotation of the job."""
    return put(f"{NOTES} {name}", value)


def command(*lines: str, leader: str = MASTER) -> Patch:
    """Lines in front of what the leader's container runs."""

    def patch(body: Body) -> None:
        args = body["spec"]["replicaSpecs"][leader.rsplit(" ", 1)[1]]["template"]["spec"]["containers"][0][
            "args"
        ]
        args[0] = "\n".join((*lines, args[0]))

    return patch


def options(text: str) -> Patch:
    """Options behind what every container runs."""

    def patch(body: Body) -> None:
        for spec in body["spec"]["replicaSpecs"].values():
            args = spec["template"]["spec"]["containers"][0]["args"]
            args[0] = args[0].rstrip() + f" {text}\n"

    return patch


def variable(name: str, value: object, leader: str = MASTER) -> Patch:
    """A variable of the leader's container."""

    def patch(body: Body) -> None:
        main = body["spec"]["replicaSpecs"][leader.rsplit(" ", 1)[1]]["template"]["spec"]["containers"][0]
        main["env"] = [
            *(one for one in main.get("env", []) if one["name"] != name),
            {"name": name, "value": value},
        ]

    return patch


def rank_table(name: str) -> Patch:
    """The leader's rank table from a ConfigMap."""
    return put(f"{MASTER} template spec volumes 0", {"name": "ranktable", "configMap": {"name": name}})


def plugin(before: str, after: str) -> Patch:
    """Another argument of the device plugin."""

    def patch(body: Body) -> None:
        args = body["spec"]["template"]["spec"]["containers"][0]["args"]
        args[0] = args[0].replace(before, after)

    return patch
