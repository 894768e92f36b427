"""Pods as the table sees them: who counts as a member right now.

A pod that terminates, failed or succeeded is no member; the operator may still list it (it compares
counts in places) and the reference publishes it. We decide by pod object and UID only.
"""

from __future__ import annotations

from mindie_ha.model.pods import Pod
from mindie_ha.model.ranktables import InstancePod, MsPod


def instance_pod(pod: Pod) -> InstancePod:
    """A pod of a server instance."""
    return InstancePod(
        name=pod.key.name,
        uid=pod.uid,
        host_ip=pod.host_ip,
        pod_ip=pod.ip,
        alive=pod.alive,
    )


def ms_pod(pod: Pod) -> MsPod:
    """A Coordinator or Controller pod."""
    return MsPod(
        name=pod.key.name,
        host_ip=pod.host_ip,
        pod_ip=pod.ip,
        alive=pod.alive,
    )


__all__ = ["instance_pod", "ms_pod"]
