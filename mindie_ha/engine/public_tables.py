"""Reads the table of public fault codes: the user's file, else the documented defaults in the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from mindie_ha.intake import public_codes
from mindie_ha.intake.public_codes import PublicCodes
from mindie_ha.model.errors import InputError, SettingsError

DEFAULTS = "data/public_codes.json"
MAX_BYTES = 1 << 20


def load_public_codes(path: str) -> PublicCodes:
    """The table in the file, or the defaults for an empty `path`. Raises SettingsError."""
    if not path:
        text = resources.files("mindie_ha.intake").joinpath(DEFAULTS).read_text("utf-8")
        return public_codes.parse(text, where=DEFAULTS)
    where = f"faults.public_codes_file {path}"
    advice = "give a file of the form of publicFaultConfiguration.json, or leave the setting empty"
    try:
        with Path(path).open("rb") as file:
            return public_codes.parse(file.read(MAX_BYTES).decode(), where=where)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(str(error), where=where, advice=advice) from None
    except InputError as error:
        raise SettingsError(error.what, where=error.where, advice=advice) from None


__all__ = ["load_public_codes"]
