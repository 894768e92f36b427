"""What one look at a scope led to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """Whether to look again at once, after back-off, or at a given wall time."""

    progressed: bool = False
    failed: bool = False
    wake_at_s: float | None = None


__all__ = ["Look"]
