"""What we watch: one `Source` per informer.

ConfigMaps come from a few selections, because nobody should have to read every ConfigMap of a cluster. An
object may match two of them; which one it counts for is decided by its name and labels (`family_of`), so that
leaving one selection never removes what another still shows.

Source: fault input contract §1.1, rank table contract §1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.cluster.client import Selection
from mindie_ha.cluster.resources import CONFIG_MAP, NODE, POD, POD_GROUP, REPLICA_SET, Resource
from mindie_ha.cluster.slim import (
    SlimConfigMap,
    SlimNode,
    SlimObject,
    SlimPod,
    SlimPodGroup,
)
from mindie_ha.cluster.slim_sets import SlimReplicaSet
from mindie_ha.cluster.workload_kinds import KINDS, MADE_BY_OPERATOR
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.reset_configs import RESET_CONFIG_PREFIX
from mindie_ha.policy.retries import RETRY_CONFIG_MAP
from mindie_ha.ranktable.hccl import RINGS_CONFIG_PREFIX

LABEL_LEDGER = "mindie-ha.io/ledger"
LABEL_PUBLIC = "mc-consumer-publicfault"
LABEL_MARK = "mindie-ha.io/mark"  # our own word to ClusterD: never a report to us
DEVICE_INFO_PREFIX = "mindx-dl-deviceinfo-"
NODE_INFO_PREFIX = "mindx-dl-nodeinfo-"
CLUSTER_SWITCH_PREFIX = "cluster-info-switch-"
CLUSTER_NODES = "cluster-info-node-cm"
CLUSTER_INFO_PREFIX = "cluster-info-device-"
CHIP_CONFIG_KEY = ObjectKey("kube-system", "mindx-dl-fault-config")
NODE_CONFIG_KEY = ObjectKey("mindx-dl", "mindx-dl-node-fault-config")


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of objects: which kind, which selection, decoded as what."""

    name: str
    resource: Resource
    model: type[SlimObject]
    selection: Selection = EVERYTHING
    optional: bool = False  # without the permission to read it, everything else goes on


NODES = Source("nodes", NODE, SlimNode)
PODS = Source("pods", POD, SlimPod)
OWNERS = tuple(
    Source(one.name, one.resource, one.model, one.selection, optional=one.optional) for one in KINDS
)
REPLICA_SETS = Source("replicasets", REPLICA_SET, SlimReplicaSet, MADE_BY_OPERATOR, optional=True)
POD_GROUPS = Source("podgroups", POD_GROUP, SlimPodGroup)
REPORTS = Source("configmaps-cim", CONFIG_MAP, SlimConfigMap, Selection(labels="mx-consumer-cim=true"))
LISTED = Source("configmaps-volcano", CONFIG_MAP, SlimConfigMap, Selection(labels="mx-consumer-volcano=true"))
LEDGERS = Source("ledgers", CONFIG_MAP, SlimConfigMap, Selection(labels=LABEL_LEDGER))
RETRIES = Source(
    "remain-retry-times",
    CONFIG_MAP,
    SlimConfigMap,
    Selection(namespace=RETRY_CONFIG_MAP.namespace, fields=f"metadata.name={RETRY_CONFIG_MAP.name}"),
)
PUBLIC = Source("configmaps-public", CONFIG_MAP, SlimConfigMap, Selection(labels=f"{LABEL_PUBLIC}=true"))
CHIP_CONFIG = Source(
    "fault-config",
    CONFIG_MAP,
    SlimConfigMap,
    Selection(namespace=CHIP_CONFIG_KEY.namespace, fields=f"metadata.name={CHIP_CONFIG_KEY.name}"),
)
NODE_CONFIG = Source(
    "node-fault-config",
    CONFIG_MAP,
    SlimConfigMap,
    Selection(namespace=NODE_CONFIG_KEY.namespace, fields=f"metadata.name={NODE_CONFIG_KEY.name}"),
)
FAULT_CONFIGS = (CHIP_CONFIG, NODE_CONFIG)
RESETS = Source("configmaps-reset", CONFIG_MAP, SlimConfigMap, Selection(labels="reset=true"))

SOURCES = (
    NODES,
    PODS,
    *OWNERS,
    REPLICA_SETS,
    POD_GROUPS,
    REPORTS,
    LISTED,
    LEDGERS,
    RETRIES,
    PUBLIC,
    RESETS,
    *FAULT_CONFIGS,
)


class Family(StrEnum):
    """What a ConfigMap is to us."""

    DEVICE_INFO = "device-info"
    NODE_INFO = "node-info"
    CHIP_CONFIG = "chip-config"
    NODE_CONFIG = "node-config"
    RINGS = "rings"
    CLUSTER_INFO = "cluster-info"
    CLUSTER_TROUBLES = "cluster-troubles"  # fused lists of switches and boards
    LEDGER = "ledger"
    RETRIES = "retries"
    PUBLIC = "public"
    RESET = "reset"  # mailbox to the agents of a training job
    OTHER = "other"


SOURCE_OF_FAMILY = {
    Family.DEVICE_INFO: REPORTS,
    Family.NODE_INFO: REPORTS,
    Family.RINGS: REPORTS,
    Family.CLUSTER_INFO: LISTED,
    Family.CLUSTER_TROUBLES: LISTED,
    Family.CHIP_CONFIG: CHIP_CONFIG,
    Family.NODE_CONFIG: NODE_CONFIG,
    Family.LEDGER: LEDGERS,
    Family.RETRIES: RETRIES,
    Family.PUBLIC: PUBLIC,
    Family.RESET: RESETS,
}


_BY_KEY = {
    RETRY_CONFIG_MAP: Family.RETRIES,
    CHIP_CONFIG_KEY: Family.CHIP_CONFIG,
    NODE_CONFIG_KEY: Family.NODE_CONFIG,
}
_PREFIXES = (
    (RINGS_CONFIG_PREFIX, Family.RINGS),
    (DEVICE_INFO_PREFIX, Family.DEVICE_INFO),
    (NODE_INFO_PREFIX, Family.NODE_INFO),
    (CLUSTER_INFO_PREFIX, Family.CLUSTER_INFO),
    (CLUSTER_SWITCH_PREFIX, Family.CLUSTER_TROUBLES),
    (CLUSTER_NODES, Family.CLUSTER_TROUBLES),
    (RESET_CONFIG_PREFIX, Family.RESET),
)


def family_of(config_map: SlimObject) -> Family:
    """Which family a ConfigMap belongs to, by name and labels."""
    key = config_map.key
    if LABEL_LEDGER in config_map.metadata.labels:
        return Family.LEDGER
    if LABEL_MARK in config_map.metadata.labels:
        return Family.OTHER
    if key in _BY_KEY:
        return _BY_KEY[key]
    for prefix, family in _PREFIXES:
        if key.name.startswith(prefix):
            return family
    if config_map.metadata.labels.get(LABEL_PUBLIC) == "true":
        return Family.PUBLIC
    return Family.OTHER


__all__ = [
    "CHIP_CONFIG",
    "CLUSTER_INFO_PREFIX",
    "DEVICE_INFO_PREFIX",
    "LABEL_LEDGER",
    "LABEL_PUBLIC",
    "LEDGERS",
    "LISTED",
    "NODES",
    "NODE_CONFIG",
    "NODE_INFO_PREFIX",
    "OWNERS",
    "PODS",
    "POD_GROUPS",
    "PUBLIC",
    "REPLICA_SETS",
    "REPORTS",
    "RESETS",
    "RETRIES",
    "SOURCES",
    "SOURCE_OF_FAMILY",
    "Family",
    "Source",
    "family_of",
]
