"""The garbage collector, set for a process with a large, long-lived heap.

Our caches and the modules of the Kubernetes library are a million objects that live as long as the process
and hold no cycles worth looking for. Left alone, Python walks all of them again and again, 0.2-1.2 s at a
time, in the middle of a recovery. So what stands after start is frozen (counted references still free it),
and full walks are made rare. Only a process of its own may do this: never a test or a library call.
"""

from __future__ import annotations

import gc

THRESHOLDS = (10_000, 20, 20)  # young objects as before by share, the old generation after 4 million


def relax() -> None:
    """Before caches fill: leave what is imported alone, and collect less often."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


def freeze() -> None:
    """After caches filled: what stands now is not walked any more."""
    gc.freeze()


__all__ = ["THRESHOLDS", "freeze", "relax"]
