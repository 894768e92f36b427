"""A service with active and standby, and the promise that we never take the last of them that runs."""

from __future__ import annotations

from mindie_ha.model.decisions import DeletePod, Plan
from mindie_ha.model.pods import PodPhase
from mindie_ha.model.ranktables import PdRole
from mindie_ha.model.workloads import Role
from tests.policy.worlds import World


def pair(*, label: str | None = "on", **kwargs: object) -> World:
    """A service with two Controllers and two Coordinators, active and standby, running and published."""
    world = World(**kwargs)  # type: ignore[arg-type]
    world.add("p0", pd_role=PdRole.PREFILL, deploy="0")
    world.add("d0", pd_role=PdRole.DECODE, deploy="1")
    labels = {} if label is None else {"pod-rescheduling": label}
    world.add("ms-controller", role=Role.CONTROLLER, labels=labels)
    world.add("ms-coordinator", role=Role.COORDINATOR, labels=labels)
    world.start()
    return world


def spares_the_last(world: World, plan: Plan) -> None:
    """The pod rung takes no pod when no other runs that is no target; asked before the plan acts."""
    for decision in plan.decisions:
        recovery = decision.ledger.recovery
        if recovery is None or recovery.rung != "pod":
            continue
        targets = {target.uid for target in recovery.targets}
        pods = world.pods_of(decision.workload.name)
        peers = [
            pod for pod in pods if pod.alive and pod.phase is PodPhase.RUNNING and pod.uid not in targets
        ]
        alive = {pod.uid for pod in pods if pod.alive}
        taken = [item for item in decision.actions if isinstance(item, DeletePod) and item.uid in alive]
        assert peers or not taken, decision.sentence
