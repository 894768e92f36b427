"""Ledgers of every older version are read; newer ones are refused and say so."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mindie_ha.cluster import documents, migrations
from mindie_ha.cluster.slim import SlimConfigMap
from mindie_ha.model.errors import LedgerUnreadable
from mindie_ha.model.ledgers import NodeLedger, ServiceLedger, WorkloadLedger
from mindie_ha.model.pauses import PauseLedger
from mindie_ha.model.public_faults import PublicFaultLedger
from mindie_ha.model.recoveries import Frozen, Phase

OLD = sorted((Path(__file__).parent.parent / "data" / "ledgers").glob("workload-*/*.json"))
KINDS: tuple[type[Frozen], ...] = (
    WorkloadLedger,
    ServiceLedger,
    NodeLedger,
    PauseLedger,
    PublicFaultLedger,
)


def holding(text: str) -> SlimConfigMap:
    metadata = {"name": "l", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    data = {"ledger.json": text, "digest": hashlib.sha256(text.encode()).hexdigest()}
    return SlimConfigMap.model_validate({"metadata": metadata, "data": data})


def decoded(text: str) -> WorkloadLedger:
    return documents.decode(holding(text), WorkloadLedger, limit=documents.MAX_BYTES)


def keeps(new: object, old: object) -> bool:
    """Whether all that `old` says stands in `new`, which may say more."""
    if isinstance(new, dict) and isinstance(old, dict):
        return all(name in new and keeps(new[name], value) for name, value in old.items())
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(keeps, new, old))
    return new == old


def holds(new: object, old: object) -> bool:
    """Whether `new` says all that `old` says, whatever more it says."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and holds(new[name], old[name]) for name in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(holds, new, old))
    return new == old


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_ledger_of_an_older_version_keeps_all_that_it_says(path: Path) -> None:
    old = json.loads(path.read_text())
    ledger = decoded(json.dumps(old))
    assert ledger.schema_version == migrations.current(WorkloadLedger)
    assert holds(json.loads(ledger.model_dump_json()), old | {"schema_version": ledger.schema_version})
    if old["recovery"]:
        assert ledger.recovery is not None
        assert ledger.recovery.phase is Phase(old["recovery"]["phase"])
        assert [target.uid for target in ledger.recovery.targets] == [
            target["uid"] for target in old["recovery"]["targets"]
        ]
    assert [one.summary for one in ledger.closed] == [one["summary"] for one in old["closed"]]


def test_there_is_an_example_and_a_step_of_every_older_version() -> None:
    for model in KINDS:
        for version in range(1, migrations.current(model)):
            assert (model, version) in migrations.STEPS
    kept = {path.parent.name for path in OLD}
    assert kept == {f"workload-{version}" for version in range(1, migrations.current(WorkloadLedger))}


def test_pauses_of_an_older_version_still_hold() -> None:
    pause = {"scope": "cluster", "text": "t", "person": "person:ann", "since_s": 1.0, "ends_at_s": None}
    text = json.dumps({"schema_version": 1, "pauses": [pause]})
    ledger = documents.decode(holding(text), PauseLedger, limit=documents.MAX_BYTES)
    assert [one.scope for one in ledger.pauses] == ["cluster"]
    assert ledger.resumed == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema_version": 99}', "schema_version 99 is newer"),
        ('{"schema_version": 0}', "no positive number"),
        ('{"schema_version": true}', "no positive number"),
        ('{"schema_version": "1"}', "no positive number"),
        ("{}", "schema_version is missing"),
        ("[]", "schema_version is missing"),
        ("{", "no JSON"),
        ('{"schema_version": 1}', "workload"),
        (f'{{"schema_version": 1, "x": {"[" * 300}{"]" * 300}}}', "cannot be written again"),
    ],
    ids=["newer", "zero", "true", "text", "missing", "list", "cut", "old-and-empty", "deep"],
)
def test_what_cannot_be_brought_up_is_unreadable(text: str, words: str) -> None:
    with pytest.raises(LedgerUnreadable, match=words):
        decoded(text)
