"""Logging: structlog loggers made once by the program and handed down, never configured globally.

JSON lines in a cluster, colours on a terminal. Context bound with `structlog.contextvars` (scope, epoch) and
with `log.bind(...)` ends up in each line. Keys are words of the domain; times are UTC.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any, TextIO, TypeAlias

import structlog
from structlog.typing import FilteringBoundLogger, Processor

Log: TypeAlias = FilteringBoundLogger


def make_log(stream: TextIO, *, as_json: bool | None = None, level: str = "info") -> Log:
    """A logger that writes to `stream`; without `as_json` a terminal gets colours, all else JSON."""
    if as_json is None:
        as_json = not stream.isatty()
    threshold = logging.getLevelNamesMapping().get(level.upper())
    if threshold is None:
        raise ValueError(f"log level {level!r} is none of debug, info, warning, error")
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _plain_values,
        structlog.processors.format_exc_info if as_json else _keep,
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(),
    ]
    logger: Log = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        context_class=dict,
    )
    return logger.bind()


def silent_log() -> Log:
    """A logger that drops everything, for tests and for pure tools."""
    logger: Log = structlog.wrap_logger(
        structlog.testing.CapturingLogger(),
        processors=[_drop],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        context_class=dict,
    )
    return logger.bind()


def _plain_values(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Keys of ours (ObjectKey, ScopeKey) are shown by their text."""
    for name, value in event.items():
        if not isinstance(value, (str, int, float, bool, list, tuple, dict, type(None), BaseException)):
            event[name] = str(value)
    return event


def _keep(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event


def _drop(_logger: Any, _method: str, _event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    raise structlog.DropEvent


__all__ = ["Log", "make_log", "silent_log"]
