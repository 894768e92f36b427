"""Files that a command reads: a path, a folder, or `-` for stdin. Each refusal is one `InputError`."""

from __future__ import annotations

import sys
from pathlib import Path

from mindie_ha.intake.lints.subjects import MAX_FILE
from mindie_ha.model.errors import InputError

STDIN = "-"
MAX_FILES = 10_000
ENDINGS = (".yaml", ".yml", ".json")


def expand(name: str) -> list[str]:
    """The files of a folder, by name; anything else stands for itself."""
    path = Path(name)
    if name == STDIN or not path.is_dir():
        return [name]
    found = sorted(str(one) for one in path.rglob("*") if one.suffix in ENDINGS and one.is_file())
    if not found:
        raise InputError("holds no *.yaml, *.yml or *.json", where=name)
    if len(found) > MAX_FILES:
        raise InputError(f"holds more than {MAX_FILES} files", where=name, advice="name a smaller folder")
    return found


def read_text(name: str) -> str:
    """The text of one file. Raises InputError."""
    try:
        if name == STDIN:
            data = sys.stdin.buffer.read(MAX_FILE + 1)
            if len(data) > MAX_FILE:
                raise InputError(f"is larger than {MAX_FILE >> 20} MiB", where=name)
            return data.decode("utf-8")
        path = Path(name)
        if path.stat().st_size > MAX_FILE:
            raise InputError(f"is larger than {MAX_FILE >> 20} MiB", where=name)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=name) from None
