"""Group ids of server instances: 2 and up, bound to an instance for life.

MS Controller tells instances apart by their addresses, people and ledgers by their id; an id that
wanders makes every table look like a change. So an instance keeps its id while its AscendJob exists,
also while it is left out of the table. A new one takes the lowest free id. The id of a vanished
AscendJob becomes free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mindie_ha.model.ranktables import FIRST_SERVER_GROUP


def assign_ids(known: Mapping[str, int], live: Iterable[str]) -> dict[str, int]:
    """Ids for exactly the `live` instance keys, sorted by key.

    `known` are the ids given so far (from our ledger, yet treated as foreign: an id below 2 is replaced; one
    that two keys claim stays with the first key by name). `live` are the instances whose AscendJob exists,
    whether complete or not.
    """
    keys = sorted(set(live))
    ids: dict[str, int] = {}
    taken: set[int] = set()
    for key in keys:
        number = known.get(key, 0)
        if number >= FIRST_SERVER_GROUP and number not in taken:
            ids[key] = number
            taken.add(number)
    candidate = FIRST_SERVER_GROUP
    for key in keys:
        if key in ids:
            continue
        while candidate in taken:
            candidate += 1
        ids[key] = candidate
        taken.add(candidate)
    return dict(sorted(ids.items()))


__all__ = ["assign_ids"]
