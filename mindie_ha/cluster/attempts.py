"""The one retry policy of writes.

Repeated: 429 (as long as told), no answer, 5xx. Everything else is an answer and goes to the caller, except a
conflict of an operation that reads anew before each attempt: that one is repeated almost at once, because the
other writer is done. The number of attempts is bounded; waiting goes through the injected clock.
"""

from __future__ import annotations

from collections.abc import Callable

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from mindie_ha.kit.backoff import Backoff
from mindie_ha.kit.clock import Clock
from mindie_ha.kit.entropy import Entropy
from mindie_ha.model.errors import Conflict, Throttled, Unreachable

ATTEMPTS = 6
MAX_WAIT_S = 10.0
CONFLICT_WAIT_S = 0.01  # the first one; doubles


def passing(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    return isinstance(error, (Throttled, Unreachable))


def write_policy(
    *, clock: Clock, entropy: Entropy, also: Callable[[BaseException], bool] = lambda _: False
) -> AsyncRetrying:
    """A fresh policy object for one operation; `also` adds errors that this operation may repeat."""
    backoff = Backoff(entropy=entropy, first_s=0.1, max_s=5.0)
    after_conflict = Backoff(entropy=entropy, first_s=CONFLICT_WAIT_S, max_s=1.0)

    def wait_s(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        if isinstance(error, Conflict):
            return after_conflict.after(state.attempt_number)
        delay_s = backoff.after(state.attempt_number)
        if isinstance(error, Throttled):
            delay_s = max(delay_s, min(error.retry_after_s, MAX_WAIT_S))
        return delay_s

    return AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_s,
        retry=retry_if_exception(lambda error: passing(error) or also(error)),
        sleep=clock.sleep,
        reraise=True,
    )


__all__ = ["passing", "write_policy"]
