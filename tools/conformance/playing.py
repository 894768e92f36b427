"""Plays a case: a few requests in a namespace of its own, each may refer to answers before it.

A step is one request (`do: METHOD path`, with `body`, `query`, `content`, `raw`), or a watch (`watch: path`,
`query`, `events`: how many to wait for). In every string `{ns}` is the namespace, `{0.metadata.uid}` a part
of the first answer. Paths that begin with `~` mean the namespace's core objects.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mindie_ha.sim.requests import ApiRequest, ApiResponse, Exchange

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "conformance"
RECORDED = FOLDER / "recorded.json"
EVENTS_WITHIN_S = 30.0
CONTENT = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Requests that belong together."""

    name: str
    steps: tuple[Step, ...]


def cases() -> Iterator[Case]:
    """All cases, in the order of files and within them."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, steps in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            yield Case(f"{path.stem}: {name}", tuple(steps))


async def play(exchange: Exchange, case: Case, *, namespace: str) -> list[Any]:
    """The raw answers of every step: `[status, body]`, or `["watch", events]`."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await _send(exchange, {"do": "POST /api/v1/namespaces", "body": body})
    answers: list[Any] = []
    for step in case.steps:
        filled = _filled(step, {"ns": namespace}, answers)
        answers.append(await (_watch if "watch" in filled else _send)(exchange, filled))
    return answers


async def _send(exchange: Exchange, step: Step) -> list[Any]:
    method, _, path = str(step["do"]).partition(" ")
    kind = step.get("content", "merge" if method == "PATCH" else "")
    headers = {"content-type": CONTENT.get(kind, kind or "application/json"), "accept": "application/json"}
    raw = str(step["raw"]).encode() if "raw" in step else b""
    if "body" in step:
        raw = json.dumps(step["body"]).encode()
    query = {key: str(value) for key, value in step.get("query", {}).items()}
    response = await exchange.handle(ApiRequest(method, path, query, headers, raw))
    return [response.status, _decoded(response)]


def _decoded(response: ApiResponse) -> Any:
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body.decode(errors="replace")


async def _watch(exchange: Exchange, step: Step) -> list[Any]:
    query = {"watch": "true", "timeoutSeconds": "20", **{k: str(v) for k, v in step.get("query", {}).items()}}
    response = await exchange.handle(
        ApiRequest("GET", str(step["watch"]), query, {"accept": "application/json"}, b"")
    )
    if response.stream is None:
        return [response.status, _decoded(response)]
    events: list[Any] = []
    rest = b""
    try:
        async with asyncio.timeout(EVENTS_WITHIN_S):
            async for chunk in response.stream:
                *lines, rest = (rest + chunk).split(b"\n")
                events += [json.loads(line) for line in lines if line.strip()]
                if len(events) >= int(step["events"]):
                    break
    finally:
        close = getattr(response.stream, "aclose", None)
        if close is not None:
            await close()
    return ["watch", events]


def _filled(value: Any, names: dict[str, str], answers: list[Any]) -> Any:
    """`value` with every reference replaced."""
    if isinstance(value, dict):
        return {key: _filled(one, names, answers) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, names, answers) for one in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"(^| )~", r"\1/api/v1/namespaces/{ns}", value)

    def found(match: re.Match[str]) -> str:
        first, *path = match.group(1).split(".")
        if first in names:
            return names[first]
        part = answers[int(first)][1]
        for step in path:
            part = part[int(step)] if isinstance(part, list) else part[step]
        return str(part)

    return re.sub(r"\{(ns|\d+(?:\.\w+)+)\}", found, text)


__all__ = ["RECORDED", "Case", "cases", "play"]
