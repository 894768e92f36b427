"""One engine for every role and rung: a new one is data that the planner is given, and nothing else changes.

The second half reads the source: nobody in the rooms below the policy decides by a role or a rung.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import mindie_ha
from mindie_ha.model.recoveries import Recovery
from mindie_ha.model.workloads import ROLES_BY_APP, Role
from mindie_ha.policy.ladders import LADDERS, LadderRow
from mindie_ha.policy.looks import Look
from mindie_ha.policy.planner import plan
from mindie_ha.policy.rungs import phases
from mindie_ha.policy.rungs.job import JobRung
from mindie_ha.policy.rungs.steps import Scope, StepResult

from .clusters import CHIP, Object, cluster, quick
from .test_training_jobs import job, replaced, runs

TUTOR = Role("tutor")


@dataclass(frozen=True, slots=True)
class OddRung:
    """Pods of odd ranks: no rung of the product replaces those."""

    name: str = "odd-ranks"

    def applicable(self, look: Look) -> bool:
        """Where something of odd rank is hit."""
        return bool(self.scope(look).uids & look.verdict.pods_hit)

    def scope(self, look: Look) -> Scope:
        """Everybody of an odd rank."""
        pods = [pod for pod in look.view.pods if (pod.rank or 0) % 2]
        names = frozenset(pod.key.name for pod in pods) or frozenset(
            target.name for target in (look.view.ledger.recovery.targets if look.view.ledger.recovery else ())
        )
        return Scope(frozenset(pod.uid for pod in pods), expected=len(names), names=names)

    def from_s(self, look: Look) -> float:
        """At once."""
        return 0.0

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The phases that all share."""
        return phases.step(look, recovery, self.scope(look))


def tutor_job() -> list[Object]:
    objects = job()
    objects[-1]["metadata"]["labels"]["app"] = "tutor"
    return objects


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("hit", "rungs", "gone"),
    [
        ("train-worker-0", ["odd-ranks"], {"train-worker-0", "train-worker-2"}),
        ("train-worker-1", ["job"], {f"train-{name}" for name in ("master-0", "worker-0", "worker-1")}),
    ],
    ids=["its-own-rung", "the-next-of-its-ladder"],
)
async def test_a_role_and_a_rung_that_only_a_test_knows_run_through_the_same_engine(
    hit: str, rungs: list[str], gone: set[str]
) -> None:
    ladders = (LadderRow(frozenset({TUTOR}), (OddRung(), JobRung())), *LADDERS)
    async with cluster(servers=(), service=tutor_job(), start=False) as c:
        c.planner = partial(plan, ladders=ladders)
        c.roles = {**ROLES_BY_APP, "tutor": TUTOR}
        await c.start(quick(unverified_after_s=5.0))
        await c.until(lambda: runs(c), "running")
        old = c.uids()
        await c.world.set_faults(c.node_of(hit), [CHIP])
        record = await c.recovered("train")
        assert record["rungs"] == rungs
        assert record["outcome"] == "recovered-unverified"  # nobody knows how a tutor is well
        assert replaced(c, old) >= gone
        assert (replaced(c, old) == gone) is (rungs != ["job"])
        assert {one.role for one in c.records if one.recovery is not None} == {"tutor"}
        await c.quiet()


# --- nobody decides by name ---------------------------------------------------------------------------------

ROOMS = ("engine", "cluster", "channels")
RUNGS = frozenset(rung.name for row in LADDERS for rung in row.rungs)
ROLES = frozenset({*ROLES_BY_APP.values(), Role.TRAINING})


def offences(text: str) -> Iterator[str]:
    """Where a source compares, matches or looks something up by the name of a role or a rung."""
    for node in ast.walk(ast.parse(text)):
        for named in filter(_is_named, _decided_by(node)):
            yield f"{named.lineno}: {ast.unparse(named)}"


def _decided_by(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=others):
            for side in (left, *others):
                yield from _parts(side)
        case ast.MatchValue(value=value):
            yield value
        case ast.Subscript(value=ast.Name(id="Literal")):
            return  # a type, not a look-up
        case ast.Subscript(slice=key):
            yield from _parts(key)
        case ast.Call(func=ast.Attribute(attr="get" | "pop" | "startswith" | "endswith"), args=args):
            for each in args[:1]:
                yield from _parts(each)
        case ast.Dict(keys=keys):
            yield from (key for key in keys if key is not None)
        case _:
            return


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from _parts(each)
    elif isinstance(node, ast.Call):
        for each in node.args:
            yield from _parts(each)
    else:
        yield node


def _is_named(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(value)):
            return value in RUNGS | ROLES
        case ast.Attribute(value=ast.Name(id="Role")):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ("MS_ROLES", "LADDERS", "BLOCKS", "LEVELS", "JobRung", "PodRung", "MemberRung")
        case _:
            return False


SOURCES = [
    pytest.param(path, id=str(path.relative_to(Path(mindie_ha.__file__).parent)))
    for room in ROOMS
    for path in sorted((Path(mindie_ha.__file__).parent / room).rglob("*.py"))
]


def test_no_role_or_rung_is_known_by_name_below_the_policy() -> None:
    found = [f"{source.id}:{each}" for source in SOURCES for each in offences(_text(source.values[0]))]
    assert len(SOURCES) > 60
    assert not found


def _text(path: object) -> str:
    assert isinstance(path, Path)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "role is Role.CONTROLLER",
        "each.role in (Role.SERVER, Role.TRAINING)",
        "role not in MS_ROLES",
        "recovery.rung == 'pod'",
        "'job' in recovery.rungs",
        "rungs[-1:] != ('job',)",
        "role in frozenset({'server'})",
        "TABLE[Role.SERVER]",
        "TABLE.get('super-pod')",
        "{Role.SERVER: 1}",
        "isinstance(rung, str) and {'rack': 1}",
        "match role:\n    case Role.SERVER:\n        pass",
        "match rung:\n    case 'level-1':\n        pass",
        "rung.startswith('pod')",
    ],
)
def test_the_reader_sees_each_way_to_decide_by_name(text: str) -> None:
    assert list(offences(text))


@pytest.mark.parametrize(
    "text",
    [
        "Workload(role=Role.TRAINING)",
        "FaultSubject('job', uid)",
        "role is None",
        "labels(role, 'pod')",
        "recovery.rung == other.rung",
        "kind: Literal['service', 'job']",
    ],
)
def test_naming_without_deciding_is_no_offence(text: str) -> None:
    assert not list(offences(text))
