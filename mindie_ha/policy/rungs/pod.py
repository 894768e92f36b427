"""The pod rung: only the pods that failed, or whose node did, are replaced; their peers go on serving.

For the Controller and the Coordinator with active and standby. Promises: the rung starts only while a pod
that runs and is not hit is left out of it, so it never takes the last one; a pod that was not hit is never
in its scope, whoever of them is active. A replacement is known by its name, which the owner gives again.

What it cannot do, it says: with every replica hit there is nothing to keep, and the next rung starts at once.
Source: motor contract §3.1-3.2; rescheduling contract §2.5-2.6; design §5, §5.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindie_ha.model.decisions import Notice
from mindie_ha.model.recoveries import RUNG_POD, Recovery
from mindie_ha.model.settings import MsLadder, RoleSettings
from mindie_ha.model.workloads import Role, Workload
from mindie_ha.policy import guards, label_values
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs import phases, scopes
from mindie_ha.policy.rungs.peers import spared
from mindie_ha.policy.rungs.steps import Scope, StepResult

LABEL_POD_RESCHEDULING = label_values.POD_RESCHEDULING
LABEL_FRAMEWORK = "framework"
ON = "on"
NO_PEER = "no peer that runs would be left, so the pod rung is passed over"
NOT_DONE = "nobody deleted the failed pod, and its label asks for all pods of the job"


@dataclass(frozen=True, slots=True)
class PodRung:
    """The pods that are hit, and whoever stands in their place."""

    name: str = RUNG_POD

    def applicable(self, look: Look) -> bool:
        """Whether something is hit, a peer that runs is left out of it, and that is what was asked for."""
        scope = self.scope(look)
        return scope.expected > 0 and not why_passed_over(look, scope)

    def scope(self, look: Look) -> Scope:
        """Pods of the names that are replaced; as long as nothing was deleted, of what is hit now too."""
        return scopes.named(look)

    def from_s(self, look: Look) -> float:  # noqa: ARG002 - one shape for all
        """At once."""
        return 0.0

    def step(self, look: Look, recovery: Recovery) -> StepResult:
        """The shared phases over that scope."""
        return phases.step(look, recovery, self.scope(look))


def why_passed_over(look: Look, scope: Scope) -> str:
    """Why this rung does not fit, "" where it does."""
    if not spared(look, scope):
        return NO_PEER
    recovery = look.view.ledger.recovery
    if (
        asked_for(look.workload, look.settings.roles)
        or recovery is None
        or recovery.phase not in scopes.CHOOSING
    ):
        return ""
    # Volcano takes only what failed, whatever the label says; where it does nothing the label counts
    untouched = len(guards.standing(look, recovery)) == len(recovery.targets)
    return NOT_DONE if untouched and look.now_s >= guards.acts_at_s(look, recovery) else ""


def asked_for(workload: Workload, settings: RoleSettings) -> bool:
    """Whether label, or without one the setting, ask for this rung, and there is a peer to keep."""
    unlabelled = LABEL_POD_RESCHEDULING not in workload.labels
    by_default = unlabelled and settings.ms_default_ladder is MsLadder.POD
    return label_asks(workload) or (by_default and workload.replicas > 1)


def label_asks(workload: Workload) -> bool:
    """Whether the label asks for less than the job, and there is a peer to keep. Programs of TensorFlow do
    not join again, whatever the label says."""
    if workload.labels.get(LABEL_FRAMEWORK) == "tensorflow":
        return False
    return workload.labels.get(LABEL_POD_RESCHEDULING) == ON and workload.replicas > 1


def remark(workload: Workload) -> Notice | None:
    """What to tell of a value of the label that does not mean what it seems to."""
    value = workload.labels.get(LABEL_POD_RESCHEDULING)
    said = label_values.judge(LABEL_POD_RESCHEDULING, value)
    if said.standing is label_values.Standing.KNOWN or workload.role is Role.SERVER:
        return None
    return Notice(
        "UnknownPodRescheduling",
        f"{workload.key}: {said.sentence}",
        warning=True,
        key=f"pod-rescheduling:{workload.uid}:{value}",
    )
