"""A service's tables go to its own peers: pods of its namespace, nodes under it, trusted proxies."""

from __future__ import annotations

import pytest

from mindie_ha.channels.ports import ServiceRef, Unresolved
from mindie_ha.engine.peer_checks import TOLD, PeerCheck, Proxies
from mindie_ha.model.ids import ScopeKey, service_key
from mindie_ha.model.settings import GrpcSettings, PeerCheckMode, Settings
from mindie_ha.model.workloads import Workload
from tests.engine.clusters import NAMESPACE, cluster, metric, quick
from tests.policy.worlds import World

from .test_hostile_inputs import OTHER, second_service

CONTROLLER = "mindie-ms-controller-master-0"


def with_check(mode: str, *proxies: str) -> Settings:
    grpc = GrpcSettings(peer_check=PeerCheckMode(mode), trusted_proxies=proxies)
    return quick().model_copy(update={"grpc": grpc})


async def test_pods_of_the_namespace_and_nodes_under_the_service_get_it_and_nobody_else() -> None:
    async with cluster(nodes=10, settings=with_check("enforce", "10.99.0.0/16")) as c:
        await c.apply(second_service("other-ms"))
        await c.until(lambda: c.published("other-ms", namespace=OTHER), "the other service")
        desk, job = c.app.desk, "mindie-ms"
        ours = c.pods()[CONTROLLER]
        theirs = c.pods(namespace=OTHER)[CONTROLLER]
        hosts = {c.node_of(name) for name in c.pods()}
        free = next(one for one in c.all("Node", "") if one["metadata"]["name"] not in hosts)
        answers = {
            "own pod": desk.resolve(job, ours["status"]["podIP"]),
            "own node": desk.resolve(job, node_ip(c.get("Node", ours["spec"]["nodeName"], ""))),
            "proxy": desk.resolve(job, "10.99.3.4"),
            "other's pod": desk.resolve(job, theirs["status"]["podIP"]),
            "free node": desk.resolve(job, node_ip(free)),
            "nobody": desk.resolve(job, "192.0.2.7"),
            "no address": desk.resolve(job, ""),
        }
        refused = {who for who, answer in answers.items() if isinstance(answer, Unresolved)}
        assert refused == {"other's pod", "free node", "nobody", "no address"}
        assert answers["own pod"] == ServiceRef(NAMESPACE, job)
        assert "grpc.peer_check" in str(answers["nobody"])
        assert metric(c.app, "mindie_ha_strange_peers_total") == 4
        for _ in range(3):
            desk.resolve(job, "192.0.2.7")
        assert c.app.core.peers.refusal(service_key(NAMESPACE, "made-up"), "192.0.2.7")
        assert metric(c.app, "mindie_ha_strange_peers_total") == 4  # each is told once


@pytest.mark.parametrize(("mode", "told"), [("warn", 1), ("off", 0)])
async def test_without_enforcement_everybody_is_served(mode: str, told: int) -> None:
    async with cluster(settings=with_check(mode)) as c:
        assert c.app.desk.resolve("mindie-ms", "192.0.2.7") == ServiceRef(NAMESPACE, "mindie-ms")
        assert metric(c.app, "mindie_ha_strange_peers_total") == told


async def test_status_tells_which_subscribers_are_none_of_the_service() -> None:
    async with cluster(settings=with_check("warn")) as c:
        mailboxes = c.app.outlets.mailboxes
        mailboxes.register("mindie-ms")
        ours = c.pods()[CONTROLLER]["status"]["podIP"]
        with (
            mailboxes.subscribe("mindie-ms", role="r", peer=f"{ours}:1", peer_ip=ours) as one,
            mailboxes.subscribe("mindie-ms", role="r", peer="192.0.2.7:1", peer_ip="192.0.2.7") as other,
        ):
            assert await one.next() is not None
            assert await other.next() is not None
            (report,) = c.app.reports()
            assert report.table is not None
            assert (report.table.subscribers, report.table.strangers) == (2, ("192.0.2.7",))
        (report,) = c.app.reports()
        assert report.table is not None
        assert (report.table.subscribers, report.table.strangers) == (0, ())


def node_ip(node: object) -> str:
    assert isinstance(node, dict)
    return str(node["status"]["addresses"][0]["address"])


class Empty:
    """A service without pods."""

    def __init__(self) -> None:
        self.workload = World().add("job").workload

    def pods_by_ip(self, ip: str) -> tuple[()]:
        return ()

    def workloads_of(self, scope: ScopeKey) -> tuple[Workload, ...]:
        return (self.workload,)

    def pods_of(self, owner_uid: str) -> tuple[()]:
        return ()

    def node_addresses(self, name: str) -> tuple[()]:
        return ()


def test_what_is_remembered_of_strangers_is_bounded() -> None:
    told: list[str] = []
    check = PeerCheck(
        mode=PeerCheckMode.ENFORCE,
        proxies=Proxies(()),
        census=Empty(),
        on_stranger=lambda _service, ip, _served: told.append(ip),
    )
    for number in range(TOLD + 10):
        assert check.refusal(service_key("a", "b"), f"10.0.{number // 256}.{number % 256}")
    assert len(told) == TOLD + 10
    assert len(check._told) == TOLD


@pytest.mark.parametrize(
    ("ip", "inside"),
    [("10.1.2.3", True), ("10.2.2.3", False), ("fd00::7", True), ("nonsense", False), ("", False)],
)
def test_proxies_are_addresses_or_networks(ip: str, inside: bool) -> None:
    assert (ip in Proxies(("10.1.0.0/16", "fd00::7"))) is inside
