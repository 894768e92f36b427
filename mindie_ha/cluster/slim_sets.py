"""StatefulSets, Deployments and ReplicaSets, reduced to the fields we read.

Their pods are made from one template, and what matters of it here are its labels: those that
somebody gave the pods stand nowhere else on the object.
"""

from __future__ import annotations

from mindie_ha.cluster.slim import PodTemplate, Slim, SlimObject, SlimOwner


class _SetSpec(Slim):
    replicas: int = 1
    template: PodTemplate = PodTemplate()


class SlimPodSet(SlimOwner):
    """What a StatefulSet and a Deployment have in common."""

    spec: _SetSpec = _SetSpec()


class SlimStatefulSet(SlimPodSet):
    """A StatefulSet: it owns its pods."""


class SlimDeployment(SlimPodSet):
    """A Deployment: its ReplicaSets own the pods."""


class SlimReplicaSet(SlimObject):
    """A ReplicaSet; only who owns it is read."""


__all__ = ["SlimDeployment", "SlimPodSet", "SlimReplicaSet", "SlimStatefulSet"]
