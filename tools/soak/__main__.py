"""`python -m tools.soak`: play simulated histories and say which promise was broken, if any.

    --seeds N          so many histories, each with a seed of its own (default 100; 1 with --seed)
    --seed S           the first seed; alone it replays one history
    --steps K          events of a history
    --theme NAME       all; failover: node losses, slow kubelets and API errors under active and standby;
                       training: a training job, now and then beside a service
    --mutation NAME    break the controller on purpose (see --list)
    --mutations        prove that every mutation is seen within --seeds (default 50)
    --jobs J           processes side by side (default: one a core)
    -o json            for machines

A history depends on nothing but its seed: a broken one is printed as the command that plays it again.
Progress goes to stderr. Exit code 0: nothing was broken (with mutations: all were seen); 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys

from tools.soak.events import THEMES
from tools.soak.histories import STEPS
from tools.soak.mutations import MUTATIONS
from tools.soak.proofs import prove
from tools.soak.runs import Run, soak

SEEDS = 100
SEEDS_OF_A_PROOF = 50


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, help="how many histories")
    parser.add_argument("--seed", type=int, help="the first seed; alone it replays one history")
    parser.add_argument("--steps", type=int, default=STEPS, help="events of a history")
    parser.add_argument("--theme", choices=sorted(THEMES), default="all", help="what may happen")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), default="", help="break the controller")
    parser.add_argument("--mutations", action="store_true", help="prove that every mutation is seen")
    parser.add_argument("--list", action="store_true", help="name the mutations")
    parser.add_argument("--jobs", type=int, default=0, help="processes side by side; 0: one a core")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    found = parser.parse_args(arguments)
    if found.steps < 0 or (found.seed or 0) < 0 or (found.seeds is not None and found.seeds < 1):
        parser.error("--seeds is at least 1, --seed and --steps at least 0")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run; the exit code."""
    found = parse(arguments)
    if found.list:
        for name, mutation in sorted(MUTATIONS.items()):
            print(f"{name:20} {(mutation.__doc__ or '').splitlines()[0]}")
        return 0
    if found.mutations:
        return prove(
            seeds=found.seeds or SEEDS_OF_A_PROOF,
            steps=found.steps,
            jobs=found.jobs,
            as_json=found.output == "json",
        )
    run = Run(
        first=found.seed or 0,
        count=found.seeds or (SEEDS if found.seed is None else 1),
        steps=found.steps,
        theme=found.theme,
        mutation=found.mutation,
        jobs=found.jobs,
    )
    return soak(run, as_json=found.output == "json")


if __name__ == "__main__":
    sys.exit(main())
