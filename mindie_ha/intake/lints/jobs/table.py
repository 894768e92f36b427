"""Every rule on jobs, in the order in which findings are told; the rows stand beside their functions.

Errors are what a reader of the value refuses or what makes recovery fail; warnings what is taken otherwise
than somebody may think; notes change no exit code.
"""

from __future__ import annotations

from mindie_ha.intake.lints.jobs import blocks, keys, programs, services, shapes, strategies, switches
from mindie_ha.intake.lints.jobs.device_plugins import PLUGIN_RULES
from mindie_ha.intake.lints.jobs.reset_configs import RESET_RULES
from mindie_ha.intake.lints.jobs.rings_configs import RINGS_RULES
from mindie_ha.intake.lints.jobs.rules import JobRule

JOB_RULES: tuple[JobRule, ...] = (
    *shapes.RULES,
    *keys.RULES,
    *switches.RULES,
    *strategies.RULES,
    *programs.RULES,
    *services.RULES,
    *blocks.RULES,
)
ALL_RULES = (*JOB_RULES, *RINGS_RULES, *RESET_RULES, *PLUGIN_RULES)
