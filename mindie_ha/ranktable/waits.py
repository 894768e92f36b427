"""Why does an instance's hccl.json stay at "initializing"? The most likely cause, in one sentence.

The operator writes `completed` once every replica carries a device annotation whose addresses it takes. So
the first pod, by name, that lacks something is the cause; if nothing lacks, the operator itself is. Only read
at when a person should be told; nothing is decided by it.

Source: rank table contract §6.2, §6.5.
"""

from __future__ import annotations

from collections.abc import Iterable

from mindie_ha.model.pods import Pod
from mindie_ha.model.ranktables import RanktableError
from mindie_ha.ranktable.consumers import is_address
from mindie_ha.ranktable.documents import decode, objects_at, optional_text_at, show

CONFIGURATIONS = (
    "ascend.kubectl.kubernetes.io/ascend-910-configuration",
    "ascend.kubectl.kubernetes.io/ascend-npu-configuration",
)
REAL_CARDS = "huawei.com/AscendReal"
NO_OPERATOR = "all pods have their devices: the Ascend Operator is not running or does not own this job"
MAX_CONFIGURATION_BYTES = 256 * 1024
"""All annotations of an object together cannot be larger than this."""


def why_initializing(pods: Iterable[Pod], *, replicas: int) -> str:
    """The probable cause. `pods` are all pod objects of the instance, `replicas` the wanted number."""
    members = sorted(pods, key=lambda pod: pod.key.name)
    alive = [pod for pod in members if pod.alive]
    if len(alive) < replicas:
        dying = next((pod for pod in members if pod.terminating), None)
        rest = f", {dying.key.name} still terminates" if dying else ""
        return f"{len(alive)} of {replicas} pods are there{rest}"
    causes = (_cause(pod) for pod in alive)
    found = next((cause for cause in causes if cause), "")
    return found or NO_OPERATOR


def _cause(pod: Pod) -> str:
    name, node = pod.key.name, show(pod.node)
    if not pod.node:
        return f"pod {name} has no node" + (f": {show(pod.unschedulable)}" if pod.unschedulable else "")
    text = next((pod.annotations[key] for key in CONFIGURATIONS if key in pod.annotations), None)
    if text is None:
        if REAL_CARDS in pod.annotations:
            return f"device IP unknown on node {node}: pod {name} has cards but no device configuration"
        return f"pod {name} has no device annotation: Volcano or the device plugin on {node} did not write it"
    try:
        root = decode(text, max_bytes=MAX_CONFIGURATION_BYTES, name="device configuration").root
        for path, device in objects_at(root, "devices", where="$", required=True):
            address = optional_text_at(device, "device_ip", where=path)
            if address and not is_address(address):
                return f"device IP unknown on node {node}: pod {name} has {show(address)}"
    except RanktableError as error:
        return f"pod {name} on node {node} has an unreadable device configuration: {error}"
    return "" if pod.ip else f"pod {name} has no address yet"


__all__ = ["CONFIGURATIONS", "NO_OPERATOR", "REAL_CARDS", "why_initializing"]
