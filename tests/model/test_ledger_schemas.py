"""Whoever changes what a ledger holds raises its version: the one before is read, the next is refused.

The digests are of the shapes (names and types) alone. After a change: raise `schema_version`, add the step to
`cluster/migrations.py`, an example of the old version to `tests/data/ledgers`, and the new digest here.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from mindie_ha.cluster.migrations import current
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pauses import PauseLedger
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.recoveries import Frozen

SHAPES: dict[type[Frozen], tuple[int, str]] = {
    WorkloadLedger: (3, "63a6cc6e378d5c1e"),
    ServiceLedger: (1, "68b0065a010281be"),
    NodeLedger: (1, "2aecfcc8c5ce2c07"),
    PauseLedger: (2, "55428e1616ccdb17"),
    PublicFaultLedger: (1, "ad0d72dfb962991c"),
}
WORDS = ("description", "title", "default")


def shape(value: object, *, is_names: bool = False) -> object:
    """A JSON schema without words for people; under `properties` and `$defs` the keys are names."""
    if isinstance(value, dict):
        return {
            name: shape(one, is_names=name in ("properties", "$defs") and not is_names)
            for name, one in value.items()
            if is_names or name not in WORDS
        }
    return [shape(one) for one in value] if isinstance(value, list) else value


def digest(model: type[Frozen]) -> str:
    text = json.dumps(shape(model.model_json_schema()), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("model", SHAPES, ids=lambda model: model.__name__)
def test_a_ledger_has_the_shape_of_its_version(model: type[Frozen]) -> None:
    assert (current(model), digest(model)) == SHAPES[model]
