"""Is the table of this workload's pods complete? One judgement for the recovery and for publication.

A server instance is complete when its `hccl.json` is valid for exactly its live pods; a pod of MS when it
has addresses. Source: rank table contract §2, design §6.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.ranktables import Finding, FindingCode, HcclTable, RanktableError, Severity
from mindie_ha.model.views import WorkloadView
from mindie_ha.model.workloads import Role
from mindie_ha.ranktable.hccl import parse_hccl, rings_config_name
from mindie_ha.ranktable.instances import check_instance
from mindie_ha.ranktable.members import instance_pod

# Wrong with the labels, not with the table: the pods are complete, the instance is left out all the same.
_LABEL_CODES = frozenset({FindingCode.DEPLOY_BOTH, FindingCode.DEPLOY_VALUE})


@dataclass(frozen=True, slots=True)
class InstanceState:
    """What the instance's own table says. `publishable`: nothing rejects it."""

    table: HcclTable | None
    findings: tuple[Finding, ...] = ()

    @property
    def rejections(self) -> tuple[Finding, ...]:
        """Findings that keep it out of the global table."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.REJECT)

    @property
    def publishable(self) -> bool:
        """Whether it may be published."""
        return self.table is not None and not self.rejections

    @property
    def complete(self) -> bool:
        """Whether the table fits the pods, whatever the labels say."""
        return self.table is not None and all(item.code in _LABEL_CODES for item in self.rejections)

    @property
    def reason(self) -> str:
        """The first rejection in words; "" if there is none."""
        return f"{self.rejections[0].where}: {self.rejections[0].message}" if self.rejections else ""


def judge_instance(view: WorkloadView) -> InstanceState:
    """Read and check the `rings-config` of `view`; a missing or unreadable one is a rejection."""
    name = rings_config_name(view.workload.key.name)
    if view.rings is None:
        message = f"ConfigMap {view.workload.key.namespace}/{name} does not exist; the operator needs it"
        return InstanceState(None, (Finding(Severity.REJECT, FindingCode.NOT_COMPLETED, name, message),))
    try:
        table = parse_hccl(view.rings.text)
    except RanktableError as error:
        code = FindingCode.UNREADABLE if view.rings.text else FindingCode.NOT_COMPLETED
        return InstanceState(None, (Finding(Severity.REJECT, code, f"{name} {error.where}", error.what),))
    findings = check_instance(
        table,
        pods=[instance_pod(pod) for pod in view.pods],
        replicas=view.workload.replicas,
        labels=view.rings.labels,
    )
    return InstanceState(table, findings)


def has_table(view: WorkloadView) -> bool:
    """Whether an `hccl.json` is expected: server instances, and jobs that brought the ConfigMap. Instances
    of an InferServiceSet are told of each other by their service, without a rank table."""
    expected = view.workload.role is Role.SERVER and not view.workload.service
    return expected or view.rings is not None
