"""CustomResourceDefinitions: the built-in custom kinds are visible as objects, and new ones are served.

A definition that somebody applies is established at once and its storage version served; deleting it
stops that and drops the objects. Definitions of built-in kinds may be re-applied; the table stays in charge.
"""

from __future__ import annotations

import orjson

from mindie_ha.sim import definitions, writing
from mindie_ha.sim.core import NO_OPTIONS, Core
from mindie_ha.sim.kinds import Route, defined_by
from mindie_ha.sim.resources import by_kind
from mindie_ha.sim.storage import Change, Kind, Stored, kind_of

CRDS = by_kind("CustomResourceDefinition")


def install(core: Core) -> None:
    """Follow definitions from now on, and make those of the built-in custom kinds."""

    def follow(kind: Kind, change: Change) -> None:
        if kind != kind_of(CRDS):
            return
        for resource in defined_by(change.now.obj):
            if change.type == "DELETED":
                core.kinds.remove(resource.group, resource.plural)
            elif resource.plural and resource.kind:
                core.kinds.add(resource)

    core.store.listen(follow)
    for definition in definitions.crds().values():
        body = orjson.loads(orjson.dumps(definition))
        establish(core, writing.create(core, Route(CRDS), body, NO_OPTIONS))


def establish(core: Core, stored: Stored) -> Stored:
    """Write the status that the definitions' controller gives a new definition."""
    obj, now = stored.thaw(), core.now_text()
    spec = obj["spec"]
    obj["status"] = {
        "acceptedNames": spec.get("names") or {},
        "storedVersions": [each["name"] for each in spec.get("versions") or [] if each.get("storage")],
        "conditions": [
            {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": text}
            for type_, reason, text in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
    }
    return core.store.put(CRDS, obj)
