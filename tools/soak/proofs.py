"""The judge judged: each mutation must be seen within so many seeds, or the judge is blind to it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from tools.soak.histories import Result
from tools.soak.mutations import MUTATIONS
from tools.soak.runs import Run, results

AT_A_TIME = 4  # seeds played side by side before it is asked whether one was enough


@dataclass(frozen=True, slots=True)
class Proof:
    """The first history in which a mutation was seen; None: in none of `played`."""

    mutation: str
    played: int
    seen: Result | None


def proofs(*, seeds: int, steps: int, jobs: int) -> Iterator[Proof]:
    """One proof a mutation, as soon as it is known."""
    for name in sorted(MUTATIONS):
        played, seen = 0, None
        while played < seeds and seen is None:
            count = min(AT_A_TIME, seeds - played)
            batch = list(results(Run(first=played, count=count, steps=steps, mutation=name, jobs=jobs)))
            seen = next((one for one in batch if not one.ok), None)
            played += count
        yield Proof(name, played, seen)


def prove(*, seeds: int, steps: int, jobs: int, as_json: bool) -> int:
    """Prove all and tell; the exit code."""
    found = []
    for proof in proofs(seeds=seeds, steps=steps, jobs=jobs):
        found.append(proof)
        print(_told(proof), file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps({"ok": all(one.seen for one in found), "mutations": [_plain(one) for one in found]}))
    return 0 if all(one.seen for one in found) else 1


def _told(proof: Proof) -> str:
    if proof.seen is None:
        return f"{proof.mutation:20} NOT SEEN in {proof.played} histories"
    return f"{proof.mutation:20} seen at seed {proof.seen.seed}: {proof.seen.violations[0]}"


def _plain(proof: Proof) -> dict[str, object]:
    seen = proof.seen
    return {
        "mutation": proof.mutation,
        "played": proof.played,
        "seed": seen.seed if seen else None,
        "violations": list(seen.violations) if seen else [],
    }


__all__ = ["Proof", "proofs", "prove"]
