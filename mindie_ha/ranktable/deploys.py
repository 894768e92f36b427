"""The deploy label of a rings-config ConfigMap: `deploy_server` of the instance's group.

Exactly one of two labels should be there. Both contradict each other: the instance is left out. None is
what real manifests without the deploy script have: the instance is published without the key and a
warning says so. MS Controller reads the value as a number. Source: rank table contract §1.1, §2.2; motor
contract §1.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from mindie_ha.model.ranktables import Finding, FindingCode, Severity
from mindie_ha.ranktable.consumers import MAX_DEPLOY_VALUE, number
from mindie_ha.ranktable.documents import show

STANDALONE_LABEL = "grt-server/deploy-server"
DISTRIBUTED_LABEL = "grt-group/deploy-server"


def deploy_server(labels: Mapping[str, str]) -> str:
    """The value to publish; "" where `check_deploy` finds none or more than one."""
    present = [labels[name] for name in (STANDALONE_LABEL, DISTRIBUTED_LABEL) if name in labels]
    return present[0] if len(present) == 1 else ""


def check_deploy(labels: Mapping[str, str]) -> tuple[Finding, ...]:
    """At most one finding about the two labels."""
    present = [name for name in (STANDALONE_LABEL, DISTRIBUTED_LABEL) if name in labels]
    if len(present) == 2:
        message = f"labels {STANDALONE_LABEL} and {DISTRIBUTED_LABEL} exclude each other; remove one"
        return (Finding(Severity.REJECT, FindingCode.DEPLOY_BOTH, "labels", message),)
    value = deploy_server(labels)
    if not value:
        which = f"label {present[0]} is empty" if present else f"no label {DISTRIBUTED_LABEL}"
        message = f"{which}: published without deploy_server, MS Controller cannot tell P from D by it"
        return (Finding(Severity.WARN, FindingCode.DEPLOY_NONE, "labels", message),)
    if number(value, at_most=MAX_DEPLOY_VALUE) is None:
        message = f"label {present[0]} must be a number, got {show(value)}"
        return (Finding(Severity.REJECT, FindingCode.DEPLOY_VALUE, "labels", message),)
    return ()


__all__ = ["DISTRIBUTED_LABEL", "STANDALONE_LABEL", "check_deploy", "deploy_server"]
