"""Where settings come from: a YAML file, then the environment, then flags; the later wins.

Environment names follow the file: `MINDIE_HA_PHASES__SETTLE_S=20` sets `phases.settle_s`. A key nobody
knows is refused with the nearest one that exists.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)
from pydantic_settings.exceptions import SettingsError as UnreadableSource

from mindie_ha.model.errors import SettingsError
from mindie_ha.model.settings import Settings

MAX_FILE_BYTES = 1 << 20


def load_settings(path: Path | None = None, *, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings of one run. `flags` is nested like the file. Raises SettingsError."""
    if path is not None:
        _check_file(path)
    try:
        loaded = _source(path)(**(flags or {}))
    except ValidationError as error:
        raise SettingsError(**_explain(error, path)) from None
    except UnreadableSource as error:
        raise SettingsError(
            f"a list or a section is not JSON ({error})",
            where="environment",
            advice="""for example MINDIE_HA_TABLE__PUSH_TARGETS='["http://host/path"]'""",
        ) from None
    return Settings.model_validate(loaded.model_dump())


def _source(path: Path | None) -> type[BaseSettings]:
    class Layered(BaseSettings, Settings):
        model_config = SettingsConfigDict(
            env_prefix="MINDIE_HA_", env_nested_delimiter="__", extra="forbid", frozen=True
        )

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings
            layers = (init_settings, env_settings)
            return (
                layers if path is None else (*layers, YamlConfigSettingsSource(settings_cls, yaml_file=path))
            )

    return Layered


def _check_file(path: Path) -> None:
    """Refuse what the settings library would take silently or explain badly."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError("the file is larger than 1 MiB", where=str(path))
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise SettingsError("is not UTF-8 text", where=str(path)) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark is not None else "somewhere"
        problem = getattr(error, "problem", None) or "bad syntax"
        raise SettingsError(f"is not YAML: {problem} in {line}", where=str(path)) from None
    if content is not None and not isinstance(content, dict):
        raise SettingsError("must be a mapping of sections", where=str(path), advice="see docs/settings.md")


def _explain(error: ValidationError, path: Path | None) -> dict[str, str]:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    where = f"{path or 'settings'}: {place}" if place else str(path or "settings")
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(first["loc"][-1]), _known_keys(first["loc"][:-1]), n=1)
        advice = f"did you mean {near[0]}?" if near else "see docs/settings.md"
        return {"what": "no such setting", "where": where, "advice": advice}
    return {"what": first["msg"], "where": where, "advice": f"got {first['input']!r:.80}"}


def _known_keys(parents: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Settings
    for parent in parents:
        field = model.model_fields.get(str(parent))
        if field is None or not (
            isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        ):
            return []
        model = field.annotation
    return list(model.model_fields)
