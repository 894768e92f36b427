"""All parameters in one table, and what a mode needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mindie_ha.policy.parameters.metadata import METADATA
from mindie_ha.policy.parameters.modes import Mode
from mindie_ha.policy.parameters.placement import PLACEMENT
from mindie_ha.policy.parameters.programs import COMPONENTS, ENVIRONMENT, SCRIPTS
from mindie_ha.policy.parameters.rows import Parameter

PARAMETERS: tuple[Parameter, ...] = (*METADATA, *PLACEMENT, *ENVIRONMENT, *SCRIPTS, *COMPONENTS)
BY_NAME: Mapping[str, Parameter] = MappingProxyType({one.name: one for one in PARAMETERS})


def parameter(name: str) -> Parameter:
    """The row of `name`. Raises KeyError: a name in our code is one of the table."""
    return BY_NAME[name]


def needed(mode: Mode) -> tuple[Parameter, ...]:
    """What `mode` needs, in the order of the table (Table 1)."""
    return tuple(one for one in PARAMETERS if mode in one.needed_by)
