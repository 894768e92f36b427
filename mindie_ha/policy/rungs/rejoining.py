"""Those who were left join those who came anew: the phase of training rungs that keep some pods.

Survivors hang in a collective with a rank that is gone. Their agents compare `RetryTime` in the job's
`reset-config` and leave it when it grows, so it is raised once each time the phase is entered, to a number
that is recorded first; whoever reads it later sees that it was said.

Source: training contract §1.2, §3.7; design §5.1.
"""

from __future__ import annotations

from mindie_ha.model.decisions import AskRejoin
from mindie_ha.model.recoveries import Recovery
from mindie_ha.model.reset_configs import ResetConfig, name_of
from mindie_ha.policy.leaders import twins
from mindie_ha.policy.looks import Look
from mindie_ha.policy.rungs.steps import Progress, Scope

RESEND_S = 2.0  # the view lags a write by less


def rejoin(look: Look, recovery: Recovery, scope: Scope) -> Progress:  # noqa: ARG001 - one shape for all
    """Ask once, then wait until every rank runs, each of them once."""
    reset = look.view.reset
    why = _closed(look, reset)
    if reset is None or why:
        return Progress(sentence=why, failed=f"the pods that were kept cannot be told: {why}")
    wanted = reset.retry_time + 1 if recovery.rejoin is None else recovery.rejoin
    if recovery.rejoin is None or reset.retry_time < wanted:
        return Progress(
            sentence=f"asking the pods that were kept to join again (RetryTime {wanted})",
            actions=(AskRejoin(key=reset.key, retry_time=wanted, at_s=look.now_s),),
            changes={"rejoin": wanted},
            wake_at_s=look.now_s + RESEND_S,
        )
    return _together(look)


def _closed(look: Look, reset: ResetConfig | None) -> str:
    """Why nothing can be written to the mailbox, "" where it can."""
    if reset is None:
        return f"there is no ConfigMap {name_of(look.workload.key.name)}"
    if reset.error:
        return reset.error
    return f"the device plugin resets a card under {reset.key}" if reset.held else ""


def _together(look: Look) -> Progress:
    missing = look.workload.replicas - len(look.alive)
    if missing > 0:
        return Progress(sentence=f"{missing} ranks are missing")
    waiting = [pod for pod in look.alive if not pod.runs]
    if waiting:
        return Progress(sentence=f"{waiting[0].key.name} does not run yet")
    if any(pod.rank is None for pod in look.alive):
        return Progress(sentence="a pod has no rank")
    if doubled := twins(look.alive):
        return Progress(sentence=doubled)
    return Progress(sentence="every rank runs", leave="rejoined")
