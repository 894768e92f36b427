"""Set-up for every test."""

from __future__ import annotations

import asyncio


def pytest_sessionstart() -> None:
    """Forbid event loops nobody asked for: looptime looks for one, and asyncio would make it."""
    asyncio.set_event_loop(None)
