"""What can happen in a simulated history: each event is drawn with everything about it from the seed.

Faults of machines, people, a slow cluster, an API server that answers anything, watches with gaps, and the
controller itself dying or standing still at any of its steps.
"""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable

from mindie_ha.model.errors import MindieHaError
from mindie_ha.sim.client import ApiError
from mindie_ha.sim.disturbances import Rule
from mindie_ha.sim.kinds import Route
from mindie_ha.sim.requests import ApiRequest
from tools.soak.stage import Object, Stage, owner_of
from tools.soak.tenants import MS_JOBS, SERVER, TRAIN

AGENT = "mindie-ha"
CHIP = ("80E18005", "SeparateNPU")
LIGHT_CHIP = ("80C98008", "RestartNPU")
NOT_READY = {"node": "NotReady"}
BOARD = {"board": "PSU", "code": "2C000031", "level": "SeparateFault"}
CARDS = 8
CLUSTER = "cluster"
PERSON = "soak"
HANGS = "example.com/storage"
UNDER_MS = 0.4  # share of the machines that are chosen because an MS pod is on them
DEATH_WITHIN_S = 20.0  # a controller that is idle takes no steps, so a trap may never spring

Event = Callable[[Stage, random.Random], Awaitable[str]]


class Ours(Rule):
    """A rule for the controllers' requests alone."""

    def matches(self, route: Route, request: ApiRequest) -> bool:
        """As `Rule`, for one user agent."""
        return request.headers.get("user-agent", "").startswith(AGENT) and super().matches(route, request)


class Theirs(Rule):
    """A rule for the requests of everybody else."""

    def matches(self, route: Route, request: ApiRequest) -> bool:
        """As `Rule`, for all other user agents."""
        return not request.headers.get("user-agent", "").startswith(AGENT) and super().matches(route, request)


def _pods(stage: Stage) -> list[Object]:
    found = [pod for tenant in stage.tenants for pod in stage.pods(tenant)]
    return sorted(found, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))


def _machine(stage: Stage, dice: random.Random) -> str:
    """A node; often one under an MS pod, because those are few and every one of them matters."""
    found = [pod["spec"].get("nodeName", "") for pod in _pods(stage) if owner_of(pod) in MS_JOBS]
    under = [name for name in found if name in stage.node_names]
    return dice.choice(under) if under and dice.random() < UNDER_MS else dice.choice(stage.node_names)


# -- machines -------------------------------------------------------------------------------------------


async def card_fails(stage: Stage, dice: random.Random) -> str:
    """One card of a node."""
    node = dice.choice(stage.node_names)
    code, level = CHIP if dice.random() < 0.8 else LIGHT_CHIP
    device = f"Ascend910-{dice.randrange(CARDS)}"
    return await _set_faults(stage, node, [{"device": device, "code": code, "level": level}])


async def board_fails(stage: Stage, dice: random.Random) -> str:
    """The board of a node."""
    return await _set_faults(stage, _machine(stage, dice), [BOARD])


async def node_is_lost(stage: Stage, dice: random.Random) -> str:
    """A node does not report any more."""
    return await _set_faults(stage, _machine(stage, dice), [NOT_READY])


async def capacity_is_lost(stage: Stage, dice: random.Random) -> str:
    """Several nodes at once."""
    nodes = dice.sample(stage.node_names, dice.randint(2, 4))
    for node in nodes:
        await _set_faults(stage, node, [NOT_READY])
    return f"nodes {', '.join(nodes)} do not report any more"


async def flaps(stage: Stage, dice: random.Random) -> str:
    """A node that comes and goes."""
    node = _machine(stage, dice)
    for _ in range(dice.randint(2, 4)):
        await _set_faults(stage, node, [NOT_READY])
        await stage.clock.sleep(dice.uniform(1, 20))
        await heal(stage, node)
        await stage.clock.sleep(dice.uniform(0, 8))
    return f"{node} flapped"


async def node_is_deleted(stage: Stage, dice: random.Random) -> str:
    """The Node object goes."""
    node = _machine(stage, dice)
    if stage.get("Node", node, "") is None:
        return f"{node} is deleted already"
    await stage.world.delete_node(node)
    return f"node {node} is deleted"


async def machine_heals(stage: Stage, dice: random.Random) -> str:
    """A node is well again, and back where it was deleted; a broken one rather than a whole one."""
    broken = [name for name in stage.node_names if is_broken(stage, name)]
    node = dice.choice(broken or stage.node_names)
    await heal(stage, node)
    return f"{node} is well"


def is_broken(stage: Stage, name: str) -> bool:
    """Whether a fault stands on a node, or its object is gone."""
    node = stage.get("Node", name, "")
    return node is None or "sim.mindie-ha.io/faults" in (node["metadata"].get("annotations") or {})


async def heal(stage: Stage, node: str) -> None:
    """Let a node be well."""
    if stage.get("Node", node, "") is None:
        await stage.world.return_node(node)
    await stage.world.heal(node)


async def _set_faults(stage: Stage, node: str, faults: list[Object]) -> str:
    if stage.get("Node", node, "") is None:
        return f"{node} is gone, it cannot fail"
    await stage.world.set_faults(node, faults)
    return f"{node}: {json.dumps(faults)}"


# -- people and processes -------------------------------------------------------------------------------


async def _tried(action: Awaitable[object], *, said: str, refused: str) -> str:
    """What is told of something that the API server or the controller may refuse."""
    try:
        await action
    except ApiError as error:
        return f"{refused}: {error.status}"
    except MindieHaError as error:
        return f"{refused}: {error}"
    return said


async def person_deletes_pod(stage: Stage, dice: random.Random) -> str:
    """Somebody deletes a pod."""
    pods = _pods(stage)
    if not pods:
        return "no pod to delete"
    meta = dice.choice(pods)["metadata"]
    return await _tried(
        stage.api.delete("Pod", meta["name"], meta["namespace"], grace_s=dice.choice((0, 5, 30))),
        said=f"a person deletes {meta['namespace']}/{meta['name']}",
        refused=f"{meta['name']} is not deleted",
    )


async def process_ends(stage: Stage, dice: random.Random) -> str:
    """A container exits."""
    pods = [pod for pod in _pods(stage) if pod["metadata"]["name"].startswith((SERVER, TRAIN))]
    if not pods:
        return "no process to end"
    meta, code = dice.choice(pods)["metadata"], dice.choice((1, 137))
    note = {"metadata": {"annotations": {"sim.mindie-ha.io/exit": json.dumps({"code": code})}}}
    return await _tried(
        stage.api.patch("Pod", meta["name"], meta["namespace"], note),
        said=f"{meta['namespace']}/{meta['name']} exits with {code}",
        refused=f"{meta['name']} does not exit",
    )


async def person_pauses(stage: Stage, dice: random.Random) -> str:
    """Somebody holds deletions for a while."""
    scope = dice.choice((CLUSTER, f"namespace/{dice.choice(stage.tenants).namespace}"))
    for_s = dice.choice((20.0, 120.0, 600.0))
    desk = (stage.leader or stage.alive[0]).app.pauses
    return await _tried(
        desk.pause(scope, text="work on the network", person=PERSON, for_s=for_s),
        said=f"a person pauses {scope} for {for_s:g} s",
        refused=f"{scope} is not paused",
    )


async def person_resumes(stage: Stage, dice: random.Random) -> str:
    """Somebody ends a pause before its time."""
    desk = (stage.leader or stage.alive[0]).app.pauses
    standing, _ = desk.standing()
    if not standing:
        return "nothing is paused"
    scope = dice.choice(standing).scope
    return await _tried(
        desk.resume(scope, person=PERSON),
        said=f"a person resumes {scope}",
        refused=f"{scope} is not resumed",
    )


async def pod_hangs(stage: Stage, dice: random.Random) -> str:
    """Somebody's finalizer keeps a pod, and its name, from going."""
    pods = _pods(stage)
    if not pods:
        return "no pod to hang"
    return await _set_finalizers(stage, dice.choice(pods), [HANGS])


async def pods_let_go(stage: Stage, _dice: random.Random) -> str:
    """That finalizer is taken off, wherever it is."""
    hanging = [pod for pod in _pods(stage) if HANGS in pod["metadata"].get("finalizers", ())]
    for pod in hanging:
        await _set_finalizers(stage, pod, [])
    return f"{len(hanging)} pods may go"


async def _set_finalizers(stage: Stage, pod: Object, finalizers: list[str]) -> str:
    meta = pod["metadata"]
    who = f"{meta['namespace']}/{meta['name']}"
    patch = {"metadata": {"uid": meta["uid"], "finalizers": finalizers}}
    return await _tried(
        stage.api.patch("Pod", meta["name"], meta["namespace"], patch),
        said=f"{who} has the finalizers {finalizers}",
        refused=f"{who} is not patched",
    )


# -- the API server and the cluster ---------------------------------------------------------------------


async def api_refuses(stage: Stage, dice: random.Random) -> str:
    """The next few requests of one kind fail; with luck after they were carried out."""
    rule = Ours(
        method=dice.choice(("", "GET", "PUT", "PATCH", "DELETE", "POST", "WATCH")),
        resource=dice.choice(("", "", "pods", "configmaps", "nodes", "podgroups")),
        code=dice.choice((409, 429, 500, 503, 504)),
        times=dice.randint(1, 6),
        retry_after_s=dice.choice((1, 3)),
    )
    rule.applied = rule.code >= 500 and dice.random() < 0.5
    stage.server.disturbances.add(rule)
    return f"API: {rule}"


async def connection_breaks(stage: Stage, dice: random.Random) -> str:
    """Requests are cut off, before or after they were carried out."""
    rule = Ours(
        method=dice.choice(("GET", "PUT", "PATCH", "DELETE", "POST")),
        reset=True,
        applied=dice.random() < 0.6,
        times=dice.randint(1, 4),
    )
    stage.server.disturbances.add(rule)
    return f"API: {rule}"


async def api_is_slow(stage: Stage, dice: random.Random) -> str:
    """Answers come late, some after the request was given up."""
    rule = Ours(
        method=dice.choice(("", "PUT", "PATCH", "DELETE", "POST", "WATCH")),
        delay_s=dice.choice((0.05, 0.5, 3.0, 9.0, 30.0)),
        applied=dice.random() < 0.5,
        times=dice.randint(1, 12),
    )
    stage.server.disturbances.add(rule)
    return f"API: {rule}"


async def actors_are_slow(stage: Stage, dice: random.Random) -> str:
    """Kubelets, scheduler or operator are slow for a while."""
    resource = dice.choice(("pods", "podgroups", "ascendjobs", "configmaps"))
    rule = Theirs(
        resource=resource,
        method=dice.choice(("PATCH", "POST", "PUT", "DELETE")),
        delay_s=dice.choice((0.3, 2.0, 8.0)),
        times=dice.randint(3, 25),
    )
    stage.server.disturbances.add(rule)
    return f"cluster: {rule}"


async def operator_is_slow(stage: Stage, dice: random.Random) -> str:
    """The instance tables of a namespace come late, so that old ones stand beside new pods."""
    rule = Theirs(
        resource="configmaps",
        namespace=dice.choice(stage.tenants).namespace,
        method="PATCH",
        delay_s=dice.choice((4.0, 15.0)),
        times=dice.randint(3, 10),
    )
    stage.server.disturbances.add(rule)
    return f"cluster: {rule}"


async def watches_break(stage: Stage, dice: random.Random) -> str:
    """Streams end, also in the middle of a line; with luck the history is gone when they come again."""
    expired = dice.random() < 0.5
    if expired:
        stage.server.disturbances.expire_history()
    cut = stage.server.disturbances.cut_watches(mid_line=dice.random() < 0.5)
    return f"{cut} watches are cut, history {'expired' if expired else 'kept'}"


async def watches_fall_silent(stage: Stage, dice: random.Random) -> str:
    """Nothing comes, then everything at once."""
    resource = dice.choice(("", "pods", "nodes", "configmaps", "ascendjobs", "podgroups"))
    for_s = dice.choice((2.0, 10.0, 45.0, 120.0))
    count = stage.server.disturbances.silence_watches(resource, for_s=for_s)
    return f"{count} watches of {resource or 'everything'} are silent for {for_s:g} s"


# -- the controller -------------------------------------------------------------------------------------


async def controller_dies(stage: Stage, dice: random.Random) -> str:
    """The leader, or a standby, at one of its next steps, whatever that is; another one comes later."""
    life = dice.choice(stage.alive) if dice.random() < 0.3 else (stage.leader or stage.alive[0])
    steps = dice.choice((1, 10, 60, 300, 1500)) + dice.randrange(10)
    life.process.trap(steps, life.die)
    await _until_dead(stage, life.process.name)
    if not life.dead:
        life.die()
    await stage.clock.sleep(dice.choice((0.0, 0.2, 2.0, 20.0)))
    await life.bury()
    await stage.staff()
    return f"{life.process.name} died at its step {life.process.steps}"


async def _until_dead(stage: Stage, name: str) -> None:
    ends_s = stage.clock.monotonic() + DEATH_WITHIN_S
    while stage.clock.monotonic() < ends_s:
        if all(life.process.name != name for life in stage.alive):
            return
        await stage.clock.sleep(0.05)


async def controller_freezes(stage: Stage, dice: random.Random) -> str:
    """The leader stands still, as by SIGSTOP, and goes on later; often while it has something to do."""
    life, for_s = stage.leader or stage.alive[0], dice.choice((1.0, 8.0, 20.0, 45.0))
    life.process.trap(dice.choice((1, 20, 200)) + dice.randrange(20), life.process.freeze)
    said = await dice.choice((person_deletes_pod, node_is_deleted, machine_heals))(stage, dice)
    await stage.clock.sleep(for_s)
    life.process.disarm()
    life.process.thaw()
    return f"{life.process.name} was frozen for up to {for_s:g} s when {said}"


EVENTS: tuple[tuple[int, Event], ...] = (
    (12, card_fails),
    (4, board_fails),
    (9, node_is_lost),
    (3, capacity_is_lost),
    (3, flaps),
    (4, node_is_deleted),
    (16, machine_heals),
    (6, person_deletes_pod),
    (6, process_ends),
    (3, person_pauses),
    (2, person_resumes),
    (2, pod_hangs),
    (3, pods_let_go),
    (7, api_refuses),
    (6, connection_breaks),
    (5, api_is_slow),
    (5, actors_are_slow),
    (4, operator_is_slow),
    (5, watches_break),
    (4, watches_fall_silent),
    (10, controller_dies),
    (6, controller_freezes),
)


# Active and standby: node losses, slow kubelets and API errors alone, so that each seed has many of them.
FAILOVER: tuple[tuple[int, Event], ...] = (
    (8, node_is_lost),
    (4, capacity_is_lost),
    (2, flaps),
    (3, node_is_deleted),
    (9, machine_heals),
    (5, actors_are_slow),
    (4, api_refuses),
    (4, connection_breaks),
    (3, api_is_slow),
    (2, controller_dies),
)
THEMES = {"all": EVENTS, "failover": FAILOVER, "training": EVENTS}


def draw(dice: random.Random, *, theme: str) -> Event:
    """The next thing that happens."""
    table = THEMES[theme]
    return dice.choices([event for _, event in table], weights=[weight for weight, _ in table])[0]


__all__ = ["THEMES", "Event", "draw", "heal", "is_broken", "pods_let_go"]
