"""Back-off: how long to wait after the n-th failure in a row.

The first delay doubles up to a bound, moved by jitter so that many who failed together do not come back
together.
"""

from __future__ import annotations

from mindie_ha.kit.entropy import Entropy


class Backoff:
    """Delays of one series of failures."""

    def __init__(
        self, *, entropy: Entropy, first_s: float = 0.1, max_s: float = 30.0, share: float = 0.2
    ) -> None:
        self._entropy = entropy
        self._first_s = first_s
        self._max_s = max_s
        self._share = share
        self.failures = 0

    def next_s(self) -> float:
        """Count one more failure and say how long to wait; never above the bound."""
        self.failures += 1
        return self.after(self.failures)

    def after(self, failures: int) -> float:
        """The delay after so many failures in a row, without counting."""
        doubled = self._first_s * 2.0 ** min(max(failures, 1) - 1, 40)
        return min(self._max_s, self._entropy.jitter(min(doubled, self._max_s), self._share))

    def reset(self) -> None:
        """A success: the next failure is the first again."""
        self.failures = 0


__all__ = ["Backoff"]
