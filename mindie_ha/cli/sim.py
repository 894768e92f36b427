"""`mindie-ha sim`: a Kubernetes cluster with Ascend nodes, without any; for kubectl and `mindie-ha run`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mindie_ha.cli.demo import check_address, either, stop_signals
from mindie_ha.cli.output import print_line
from mindie_ha.cli.sources import run_async
from mindie_ha.demo import clusters
from mindie_ha.demo.clusters import ClusterPlan
from mindie_ha.demo.scenarios import Object, read_objects
from mindie_ha.kit.logs import make_log
from mindie_ha.model.errors import InputError, MindieHaError

MAX_NODES = 1000


class Model(StrEnum):
    """Kinds of servers."""

    A2 = "a2"
    A3 = "a3"


def sim(
    *,
    kubeconfig: Annotated[Path, typer.Option(help="written for kubectl; with --actors-only it is read")],
    listen: Annotated[str, typer.Option(help="HOST:PORT of the API server; port 0 takes a free one")] = "",
    manifest: Annotated[
        list[Path] | None, typer.Option(help="apply this file; may be given several times")
    ] = None,
    nodes: Annotated[int, typer.Option(help="number of servers")] = 10,
    model: Annotated[Model, typer.Option(help="a2: 8 NPUs a server; a3: 16, super pods of 4")] = Model.A2,
    seed: Annotated[int | None, typer.Option(help="repeat the delays of an earlier run")] = None,
    volcano_reschedules: Annotated[
        bool,
        typer.Option(
            "--volcano-reschedules", help="Volcano deletes pods of faulty jobs, as it does by itself"
        ),
    ] = False,
    actors_only: Annotated[
        bool, typer.Option("--actors-only", help="run the actors against the cluster of --kubeconfig")
    ] = False,
) -> None:
    """Run an embedded cluster until Ctrl-C: API server, operator, scheduler, kubelets, MS Controllers."""
    if not 1 <= nodes <= MAX_NODES:
        raise InputError(f"must be 1 to {MAX_NODES}", where=f"--nodes {nodes}")
    if bool(listen) == actors_only:
        advice = "--actors-only needs no --listen" if actors_only else "for example --listen 127.0.0.1:6443"
        raise InputError("give one of --listen and --actors-only", where="command line", advice=advice)
    check_address(listen)
    host, _, port = listen.rpartition(":")
    plan = ClusterPlan(
        kubeconfig=kubeconfig,
        listen=(host.strip("[]") or "127.0.0.1", int(port or 0)),
        actors_only=actors_only,
        model=model,
        nodes=nodes,
        seed=seed,
        volcano_reschedules=volcano_reschedules,
    )
    files = [(path, read_objects(path)) for path in manifest or []]
    run_async(run(plan, files))


async def run(plan: ClusterPlan, files: list[tuple[Path, tuple[Object, ...]]]) -> None:
    """Run the cluster with these manifests until it is told to stop. Raises MindieHaError."""
    log = make_log(sys.stderr, level="error")
    with stop_signals() as stopped:
        async with clusters.running(plan, log=log) as cluster:
            for path, objects in files:
                await clusters.apply(cluster, objects, where=str(path))
            for line in how_to(plan, cluster.server):
                print_line(line)
            sys.stdout.flush()
            await either(stopped, cluster.supervisor.failed)
            if cluster.supervisor.failed.is_set():
                raise MindieHaError(cluster.supervisor.failure)


def how_to(plan: ClusterPlan, server: str) -> list[str]:
    """What a person can do next."""
    fault = '[{"device":"Ascend910-3","code":"80E18005","level":"SeparateNPU"}]'
    kubectl = f"kubectl --kubeconfig {plan.kubeconfig}"
    return [
        f"{plan.nodes} {plan.model} servers run at {server}; kubeconfig: {plan.kubeconfig}; Ctrl-C ends",
        f"  look     {kubectl} get pods -A -o wide",
        f"  protect  mindie-ha run --kubeconfig {plan.kubeconfig}",
        f"  break    {kubectl} annotate node NODE sim.mindie-ha.io/faults='{fault}'",
        f"  heal     {kubectl} annotate node NODE sim.mindie-ha.io/faults-",
    ]
