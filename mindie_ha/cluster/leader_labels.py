"""Leadership as a pod label, which the gRPC Service selects.

Whoever leads takes the label off every other pod first, then puts it on its own: a client may find nobody for
a moment, never two. Nobody else touches it, so a pod that lost its lead keeps the label until the next leader
comes; its gRPC port is closed meanwhile. The label is looked at from time to time, because people edit pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.cluster.client import Client, Selection
from mindie_ha.cluster.resources import POD
from mindie_ha.cluster.slim import Page, SlimPod, decode_json, slim
from mindie_ha.cluster.writer import Writer
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.logs import Log
from mindie_ha.model.errors import ClusterError, InputError, LeaseLost
from mindie_ha.model.ids import ObjectKey, PodUID

LABEL_LEADER = "mindie-ha.io/leader"
LEADER = "true"
LOOK_S = 60.0
AGAIN_S = 5.0  # after a failure


@dataclass(frozen=True, slots=True)
class OwnPod:
    """The pod we run in."""

    key: ObjectKey
    uid: str = ""


def own_pod(environment: Mapping[str, str]) -> OwnPod | None:
    """From the downward API (`POD_NAME`, `POD_NAMESPACE`, `POD_UID`); None outside of a pod."""
    name, namespace = environment.get("POD_NAME", ""), environment.get("POD_NAMESPACE", "")
    return OwnPod(ObjectKey(namespace, name), environment.get("POD_UID", "")) if name and namespace else None


class LeaderLabel:
    """Keeps the label where it belongs while we lead. `run` is a task."""

    def __init__(self, own: OwnPod, *, client: Client, writer: Writer, clock: Clock, log: Log) -> None:
        self.problem = ""  # why clients may not find us, for people
        self._own = own
        self._client = client
        self._writer = writer
        self._clock = clock
        self._log = log

    async def run(self) -> None:
        """Put it right, again and again, until cancelled."""
        while True:
            try:
                await self.settle()
            except (ClusterError, InputError, LeaseLost) as error:
                self.problem = f"the pod label {LABEL_LEADER} is not set: {error}"
                self._log.warning("the leader's label is not set; clients may not find us", error=str(error))
                await self._clock.sleep(AGAIN_S)
                continue
            self.problem = ""
            await self._clock.sleep(LOOK_S)

    async def settle(self) -> None:
        """Off every other pod, then onto ours; writes nothing where that is so. Raises ClusterError."""
        wanted = Selection(namespace=self._own.key.namespace, labels=f"{LABEL_LEADER}={LEADER}")
        body = await self._client.list_page(POD, wanted, limit=0)
        labelled = {pod.key: PodUID(pod.metadata.uid) for pod in Page(body, SlimPod, kind=POD.kind).objects}
        for key, uid in labelled.items():
            if key != self._own.key:
                await self._writer.label_pod(key, uid=uid, name=LABEL_LEADER, value=None)
        if self._own.key not in labelled:
            uid = PodUID(self._own.uid) or await self._uid()
            await self._writer.label_pod(self._own.key, uid=uid, name=LABEL_LEADER, value=LEADER)

    async def _uid(self) -> PodUID:
        """Where the downward API does not tell: of the pod that has our name."""
        raw = await self._client.get(POD, self._own.key)
        return PodUID(slim(decode_json(raw, where="our pod"), SlimPod, kind=POD.kind).metadata.uid)


__all__ = ["LABEL_LEADER", "LeaderLabel", "OwnPod", "own_pod"]
