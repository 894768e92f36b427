"""Who owns a workload: whether we may delete its pods, and who acts first.

The label `fault-scheduling` says what the user wants, the annotation `ProcessRecoverStrategy` of the
PodGroup says who was promised it. With that annotation, whatever its value, Volcano never deletes a pod
of the job; so we set it to our name (adoption) and delete only while we *see* it standing. As long as it
is not seen, Volcano is expected to act first and we guard. Any other value means that a platform owns the
job. Values that only look like a switch are reported, never guessed: see `label_values`.

Ownership governs deletion only: tables are published for every service.

Source: rescheduling contract §1.1 (labels, annotation), G8; design §7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mindie_ha.model.decisions import Notice
from mindie_ha.model.settings import Owner, Settings
from mindie_ha.model.workloads import PodGroup, Workload
from mindie_ha.policy import label_values

LABEL_FAULT_SCHEDULING = label_values.FAULT_SCHEDULING
ANNOTATION_STRATEGY = "ProcessRecoverStrategy"
STRATEGY_OURS = "mindie-ha"
WAITING_FOR_PLATFORM = "WaitingForPlatform"
WAITING_FOR_LABEL = "WaitingForLabel"


class Ownership(StrEnum):
    """What we may do with the pods of a workload."""

    ADOPTED = "adopted"  # ours, and Volcano is seen to be told so
    GUARD = "guard"  # Volcano acts first, we after `guard_s`
    OURS_EXTERNAL = "ours-external"  # Volcano deletes nothing by label
    OBSERVE = "observe"  # shown, published, never touched
    PLATFORM = "platform"  # somebody else's annotation: never touched, and said so


class Mode(StrEnum):
    """How pods are deleted."""

    FORCE = "force"
    GRACE = "grace"


@dataclass(frozen=True, slots=True)
class Claim:
    """Our standing towards one workload. `adopt`: the annotation is ours to set and is not seen yet."""

    ownership: Ownership
    mode: Mode = Mode.FORCE
    external: bool = False
    adopt: bool = False
    notice: Notice | None = None

    @property
    def acts(self) -> bool:
        """Whether a recovery may be opened at all."""
        return self.ownership in (Ownership.ADOPTED, Ownership.GUARD, Ownership.OURS_EXTERNAL)


def claim(workload: Workload, podgroup: PodGroup | None, *, settings: Settings) -> Claim:
    """Read labels and PodGroup of `workload`."""
    asked = workload.labels.get(LABEL_FAULT_SCHEDULING)
    match asked:
        case "force" | "grace":
            return _managed(workload, podgroup, Mode(asked), settings=settings)
        case "external-force" | "external-grace":
            return _external(workload, podgroup, Mode(asked.removeprefix("external-")))
        case None | "off":
            return Claim(Ownership.OBSERVE)
        case _:
            return Claim(Ownership.OBSERVE, notice=_unknown_value(workload, asked))


def strategy_of(workload: Workload, podgroup: PodGroup | None) -> str | None:
    """The value of `ProcessRecoverStrategy` on the PodGroup or the job; None: nobody set it."""
    if podgroup is not None and ANNOTATION_STRATEGY in podgroup.annotations:
        return podgroup.annotations[ANNOTATION_STRATEGY]
    return workload.annotations.get(ANNOTATION_STRATEGY)


def _managed(workload: Workload, podgroup: PodGroup | None, mode: Mode, *, settings: Settings) -> Claim:
    strategy = strategy_of(workload, podgroup)
    if strategy is not None and strategy != STRATEGY_OURS:
        return _platform(workload, strategy, mode=mode)
    if settings.ownership.owner is Owner.VOLCANO:
        return Claim(Ownership.GUARD, mode)
    if podgroup is None:
        return Claim(Ownership.GUARD, mode)
    if podgroup.annotations.get(ANNOTATION_STRATEGY) == STRATEGY_OURS:
        return Claim(Ownership.ADOPTED, mode)
    return Claim(Ownership.GUARD, mode, adopt=True)


def _external(workload: Workload, podgroup: PodGroup | None, mode: Mode) -> Claim:
    strategy = strategy_of(workload, podgroup)
    if strategy is not None and strategy != STRATEGY_OURS:
        return _platform(workload, strategy, mode=mode)
    ours = workload.kind == "AscendJob"  # the infer-operator acts on the others
    return Claim(Ownership.OURS_EXTERNAL if ours else Ownership.GUARD, mode, external=True)


def _platform(workload: Workload, strategy: str, *, mode: Mode) -> Claim:
    message = (
        f"{workload.key}: {ANNOTATION_STRATEGY} is {strategy!r}, so a platform owns this job; "
        f"nothing is deleted. Remove the annotation to hand the job over"
    )
    notice = Notice(WAITING_FOR_PLATFORM, message, warning=True, key=f"platform:{workload.uid}")
    return Claim(Ownership.PLATFORM, mode, notice=notice)


def _unknown_value(workload: Workload, asked: str) -> Notice:
    said = label_values.judge(LABEL_FAULT_SCHEDULING, asked)
    return Notice(
        "UnknownFaultScheduling",
        f"{workload.key}: {said.sentence}",
        warning=True,
        key=f"fault-scheduling:{workload.uid}:{asked}",
    )
