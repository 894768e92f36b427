"""JSON in ConfigMaps that we share with others: read, changed, and written again with what is theirs."""

from __future__ import annotations

import orjson

from mindie_ha.model.errors import InputError


def read(text: str, *, name: str, where: str) -> object:
    """The value in `text`; raises InputError where it is no JSON, or where it could not be written again.

    The library reads deeper nesting than it writes.
    """
    try:
        content: object = orjson.loads(text)
        orjson.dumps(content)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{name} is no JSON: {error}", where=where) from error
    except orjson.JSONEncodeError as error:
        raise InputError(f"{name} cannot be written again: {error}", where=where) from error
    return content


__all__ = ["read"]
