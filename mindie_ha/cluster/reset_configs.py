"""Reading and changing `reset.json`, field by field: what others wrote into it stays.

Agents of TaskD and MindIO watch it inside their pods. `RetryTime` is what they compare; `restartType` and
`checkCode` (SHA-256 of `reset.json` as written) go with every change. Source: training contract §1.2, §3.7;
rescheduling contract §2.6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import orjson

from mindie_ha.model.errors import InputError
from mindie_ha.model.ids import ObjectKey
from mindie_ha.model.reset_configs import RankReset, ResetConfig

RESET_KEY = "reset.json"
CHECK_CODE = "checkCode"
RESTART_TYPE = "restartType"
POD_RESCHEDULE = "podReschedule"
MAX_RANKS = 100_000


def parse(key: ObjectKey, data: Mapping[str, str]) -> ResetConfig:
    """The ConfigMap as facts; hostile content is an error of this one object."""
    try:
        content = _content(data, where=f"ConfigMap {key}")
        ranks = _ranks(content, where=f"ConfigMap {key}")
        retry_time = _integer(content, "RetryTime", where=f"ConfigMap {key}")
    except InputError as error:
        return ResetConfig(key, error=str(error))
    return ResetConfig(
        key,
        retry_time=retry_time,
        graceful_exit=content.get("GracefulExit") == 1,
        ranks=ranks,
        restart_type=data.get(RESTART_TYPE, ""),
    )


def rejoined(
    data: Mapping[str, str], *, key: ObjectKey, retry_time: int, at_s: float
) -> dict[str, str | None]:
    """The keys to write so that survivors join the replaced pods; none where it was said already.

    Raises InputError where the content cannot be read, since nobody overwrites what they do not understand,
    and where the device plugin took it since we looked.
    """
    content = _content(data, where=f"ConfigMap {key}")
    if _integer(content, "RetryTime", where=f"ConfigMap {key}") >= retry_time:
        return {}
    _check_free(content, key)
    content |= {"RankList": [], "UpdateTime": int(at_s), "RetryTime": retry_time, "FaultFlushing": False}
    return _written(content, restart_type=POD_RESCHEDULE)


def gracefully_ending(
    data: Mapping[str, str], *, key: ObjectKey, ending: bool, at_s: float
) -> dict[str, str | None]:
    """The keys to write so that training processes end by themselves, or no longer; none where it says so.

    Raises InputError like `rejoined`; a word of ours is taken back though the device plugin is at work, since
    it would end every successor.
    """
    content = _content(data, where=f"ConfigMap {key}")
    if (content.get("GracefulExit") == 1) is ending:
        return {}
    if ending:
        _check_free(content, key)
    content |= {"GracefulExit": int(ending), "UpdateTime": int(at_s)}
    return _written(content, restart_type=None)


def _check_free(content: Mapping[str, object], key: ObjectKey) -> None:
    where = f"ConfigMap {key}"
    if ResetConfig(key, ranks=_ranks(content, where=where)).held:
        raise InputError("the device plugin resets a card under the job", where=where)


def _written(content: dict[str, object], *, restart_type: str | None) -> dict[str, str | None]:
    text = orjson.dumps(content).decode()
    said = {RESTART_TYPE: restart_type} if restart_type is not None else {}
    return {RESET_KEY: text, CHECK_CODE: hashlib.sha256(text.encode()).hexdigest(), **said}


def _content(data: Mapping[str, str], *, where: str) -> dict[str, object]:
    text = data.get(RESET_KEY)
    if text is None or not text.strip():
        raise InputError(f"has no {RESET_KEY}", where=where, advice="apply the job's reset ConfigMap")
    try:
        content = orjson.loads(text)
        orjson.dumps(content)  # it reads deeper nesting than it writes, and all that is here is written again
    except orjson.JSONDecodeError as error:
        raise InputError(f"{RESET_KEY} is no JSON: {error}", where=where) from error
    except orjson.JSONEncodeError as error:
        raise InputError(f"{RESET_KEY} cannot be written again: {error}", where=where) from error
    if not isinstance(content, dict):
        raise InputError(f"{RESET_KEY} is no JSON object", where=where)
    return content


def _ranks(content: Mapping[str, object], *, where: str) -> tuple[RankReset, ...]:
    listed = content.get("RankList") or []
    if not isinstance(listed, list) or len(listed) > MAX_RANKS:
        raise InputError("RankList is no list of ranks", where=where)
    found = []
    for entry in listed:
        if not isinstance(entry, dict):
            raise InputError("RankList holds something that is no rank", where=where)
        rank = _integer(entry, "RankId", where=where)
        found.append(RankReset(rank, str(entry.get("Status") or ""), str(entry.get("Policy") or "")))
    return tuple(found)


def _integer(content: Mapping[str, object], name: str, *, where: str) -> int:
    value = content.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise InputError(f"{name} is no number", where=where)
    return value


__all__ = ["gracefully_ending", "parse", "rejoined"]
