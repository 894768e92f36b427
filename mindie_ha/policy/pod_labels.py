"""The label that tells other software which MS pod is active: `mindie-ha.io/ms-state`. Off by default.

Promise: no moment in which two pods of a workload carry `active`. It is stripped from every other pod first,
those that are dying too, and given only when a look sees that nobody carries it; so a failure half way leaves
nobody labelled, never two, and the next look goes on. While nobody knows who is active, who has it keeps it.
Orders follow from what the pods carry alone, so nothing is written when all is as it should be.

Source: design §5.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from mindie_ha.model.decisions import LabelPod
from mindie_ha.model.pods import Pod
from mindie_ha.model.roles import Activity
from mindie_ha.policy import activity
from mindie_ha.policy.looks import Look

LABEL_STATE = "mindie-ha.io/ms-state"


def orders(look: Look) -> tuple[LabelPod, ...]:
    """The labels to change now. A dry run has no memory of what it did not write, so it orders none."""
    wanted = look.settings.roles.label_pods and not look.settings.dry_run
    if not wanted or look.workload.role not in activity.MS_ROLES:
        return ()
    chosen = _chosen(look)
    others = [pod for pod in look.view.pods if pod is not chosen]
    changed = tuple(_without_active(look, others, known=chosen is not None))
    if chosen is None or _state(chosen) == Activity.ACTIVE or any(map(_is_called_active, others)):
        return changed
    return (*changed, _order(chosen, Activity.ACTIVE))


def _chosen(look: Look) -> Pod | None:
    """Who has to carry `active`. Of two that both claim to be it, who carries it already."""
    claiming = activity.active(look.alive, look.view.roles)
    if len(claiming) == 1:
        return claiming[0]
    return next((pod for pod in claiming if _is_called_active(pod)), None)


def _without_active(look: Look, pods: list[Pod], *, known: bool) -> Iterator[LabelPod]:
    for pod in pods:
        role = look.view.roles.get(pod.uid)
        stands_by = pod.alive and role is not None and role.activity is Activity.STANDBY
        if stands_by:
            if _state(pod) != Activity.STANDBY:
                yield _order(pod, Activity.STANDBY)
        elif _is_called_active(pod) and (known or not pod.alive):
            yield _order(pod, None)


def _is_called_active(pod: Pod) -> bool:
    return _state(pod) == Activity.ACTIVE


def _state(pod: Pod) -> str | None:
    return pod.labels.get(LABEL_STATE)


def _order(pod: Pod, state: Activity | None) -> LabelPod:
    return LabelPod(key=pod.key, uid=pod.uid, name=LABEL_STATE, value=state.value if state else None)


__all__ = ["LABEL_STATE", "orders"]
