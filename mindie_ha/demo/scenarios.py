"""Scenarios: what is set up, what breaks, and what must have happened in the end.

A scenario is a YAML file, shipped in `scenarios/` or written by a user. Everything is refused that is not
understood: a typo must not turn an expectation into nothing. Names of workloads and pods are
`namespace/name`. All times are seconds of the cluster's clock. The steps are in `steps.py`, what is
expected in `expectations.py`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from mindie_ha.demo import expectations, manifests, steps
from mindie_ha.demo.expectations import Expect
from mindie_ha.demo.steps import Name, Step, Strict
from mindie_ha.model.errors import InputError

DEFAULT = "prefill-chip-fault"
MAX_FILE_BYTES = 1 << 20
Object = dict[str, Any]


class Cluster(Strict):
    """The embedded cluster of the scenario."""

    model: Literal["a2", "a3"] = "a2"
    nodes: int = Field(10, ge=1, le=200)
    seed: int = 1
    starts_at: datetime | None = None  # what the cluster's clock shows first; now if left out
    stale_links: tuple[Name, ...] = ()  # jobs whose pods never link to a peer that was rebuilt meanwhile
    leads_first: tuple[Name, ...] = ()  # MS pods that are the active ones when the service comes up
    volcano_reschedules: bool = False  # Volcano's own rescheduler acts as well
    clusterd_lag_s: tuple[float, float] = (0.0, 5.0)  # least and most before Volcano hears of a change
    infer_operator_reschedules: bool = True  # the infer-operator rebuilds faulty instances


class Scenario(Strict):
    """One scenario. `leave_out` names objects of the manifest that are not applied, `changes` what is merged
    into others, by name."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    title: str
    about: str
    manifest: str
    leave_out: tuple[str, ...] = ()
    changes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    cluster: Cluster = Cluster()
    settings: dict[str, Any] = Field(default_factory=dict)
    steps: tuple[Step, ...] = Field(min_length=1)
    expect: Expect
    limit_s: float = Field(600.0, gt=0, description="everything is over within this time of the cluster")
    max_speed: float = Field(
        1000.0, gt=0, description="faster, this machine's hiccups would look like faults"
    )
    folder: Path | None = None  # where the file lies; None for one of ours

    def pace(self, speed: float) -> float:
        """How many times faster than life it is played when `speed` is asked for."""
        return min(speed, self.max_speed)

    def objects(self) -> tuple[Object, ...]:
        """The Kubernetes objects to apply. Raises InputError for a manifest that cannot be read."""
        found = tuple(_manifest(self.manifest, self.folder))
        known = {each["metadata"]["name"] for each in found}
        for key, named in (("leave_out", self.leave_out), ("changes", self.changes)):
            if unknown := set(named) - known:
                raise InputError(
                    f"{key} names {', '.join(sorted(unknown))}, which the manifest does not have",
                    where=f"scenario {self.name}",
                )
        return tuple(
            _merged(each, self.changes.get(each["metadata"]["name"], {}))
            for each in found
            if each["metadata"]["name"] not in self.leave_out
        )


def names() -> tuple[str, ...]:
    """The scenarios we ship, the default one first."""
    folder = resources.files("mindie_ha.demo") / "scenarios"
    found = sorted(
        entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )
    return tuple(sorted(found, key=lambda name: (name != DEFAULT, name)))


def load(name: str) -> Scenario:
    """A scenario by its name or by the path of a file. Raises InputError with the nearest name."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return _parse(_read(path), where=name, folder=path.parent)
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        if path.is_file():
            hint = "a file's name ends in .yaml; "
        raise InputError(
            "no such scenario", where=f"--scenario {name}", advice=f"{hint}see mindie-ha demo --list"
        )
    text = (resources.files("mindie_ha.demo") / "scenarios" / f"{name}.yaml").read_text(encoding="utf-8")
    return _parse(text, where=f"scenario {name}", folder=None)


def _merged(value: Object, change: Object) -> Object:
    """`value` with `change` put into it, mapping by mapping; anything else is replaced."""
    both = {
        key: _merged(value[key], each)
        if isinstance(each, dict) and isinstance(value.get(key), dict)
        else each
        for key, each in change.items()
    }
    return {**value, **both}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError("the file is larger than 1 MiB", where=str(path))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=str(path)) from None


def _parse(text: str, *, where: str, folder: Path | None) -> Scenario:
    documents = _documents(text, where=where)
    if len(documents) != 1:
        raise InputError(
            "must be one YAML mapping", where=where, advice="see the files of mindie-ha demo --list"
        )
    try:
        scenario = Scenario.model_validate(documents[0])
    except ValidationError as error:
        raise _explained(error, where) from None
    return scenario.model_copy(update={"folder": folder})


def _documents(text: str, *, where: str) -> list[Object]:
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "bad syntax"
        raise InputError(f"is not YAML: {problem}{line}", where=where) from None
    if not all(isinstance(each, dict) for each in documents):
        raise InputError("every document must be a mapping", where=where)
    return documents


def _explained(error: ValidationError, where: str) -> InputError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(first["loc"][-1]), _fields(first["loc"][:-1]), n=1)
        advice = f"did you mean {near[0]}?" if near else ""
        return InputError("no such key", where=f"{where}: {place}", advice=advice)
    what = first["msg"].removeprefix("Value error, ")
    return InputError(
        what, where=f"{where}: {place}" if place else where, advice=f"got {first['input']!r:.80}"
    )


def _fields(parents: tuple[int | str, ...]) -> list[str]:
    """The keys that a place in the file may have; for "did you mean"."""
    models: dict[int | str, type[BaseModel]] = {"cluster": Cluster, **steps.MODELS, **expectations.MODELS}
    named = [part for part in parents if part in models]
    return list((models[named[-1]] if named else Scenario).model_fields)


def _manifest(name: str, folder: Path | None) -> Iterator[Object]:
    if name in manifests.NAMES:
        yield from manifests.load(name)
        return
    if folder is None:
        raise InputError("no such manifest", where=name, advice=f"one of {', '.join(manifests.NAMES)}")
    path = folder / name
    if not path.exists():
        advice = f"a file beside the scenario, or one of {', '.join(manifests.NAMES)}"
        raise InputError("no such manifest", where=str(path), advice=advice)
    yield from read_objects(path)


def read_objects(path: Path) -> tuple[Object, ...]:
    """The Kubernetes objects of a file. Raises InputError: what, where, what to do."""
    found = []
    for number, each in enumerate(_flat(_documents(_read(path), where=str(path))), start=1):
        metadata = each.get("metadata")
        if not (isinstance(each.get("kind"), str) and isinstance(each.get("apiVersion"), str)):
            raise InputError("has no kind or apiVersion", where=f"{path}: document {number}")
        if not (isinstance(metadata, dict) and isinstance(metadata.get("name"), str)):
            raise InputError("has no metadata.name", where=f"{path}: document {number}")
        # YAML anchors share objects and YAML dates are no JSON: a copy through JSON settles both
        found.append(json.loads(json.dumps(each, default=str)))
    return tuple(found)


def _flat(documents: Iterable[Object]) -> Iterator[Object]:
    """The objects one by one: `kubectl get -o yaml` wraps several into a List."""
    for each in documents:
        items = each.get("items")
        if each.get("kind") == "List" and isinstance(items, list):
            yield from (item for item in items if isinstance(item, dict))
        else:
            yield each


__all__ = ["DEFAULT", "Cluster", "Scenario", "load", "names", "read_objects"]
