"""The garbage collector, set for a process with a large, long-lived heap.

Our caches and the modules of the Kubernetes library are a million objects that live as long as the process
and hold no cycles worth looking for. Left alone, Python walks all of them again and again, 0.2-1.2 s at a
time, in the middle of a recovery. So what stands after start is frozen (counted references still free it),
and full walks are made rare. Only a process of its own may do this: never a test or a library call.
"""

from __future__ import annotations

import gc

FILLING = (10_000, 500, 20)  # almost nothing that comes in is garbage; a walk of the youngest takes some 2 ms
RUNNING = (10_000, 20, 20)  # the old generation after 4 million objects more


def relax() -> None:
    """Before caches fill: leave what is imported alone, and collect rarely."""
    gc.set_threshold(*FILLING)
    gc.freeze()


def freeze() -> None:
    """After caches filled: what stands now is not walked any more; collect as usual, only less often."""
    gc.freeze()
    gc.set_threshold(*RUNNING)


__all__ = ["freeze", "relax"]
