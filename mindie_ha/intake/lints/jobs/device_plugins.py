"""Arguments of the device plugin, in its DaemonSet.

Source: training contract §1.10, §3.3; rescheduling contract §1.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindie_ha.intake.jobs.places import Path
from mindie_ha.intake.lints.jobs.rules import Hit, Hits, Rule, listed, quoted
from mindie_ha.intake.lints.remarks import Sheet, Weight
from mindie_ha.intake.lints.subjects import Subject
from mindie_ha.policy.parameters.catalogue import parameter

NAME = "device plugin"
CONTAINERS: Path = ("spec", "template", "spec", "containers")
_ARGUMENT = re.compile(r"(?:^|\s)--?(hotReset|volcanoType|autoStowing|listWatchPeriod)[= ]\s*([^\s\"']+)")
_PROGRAM = re.compile(r"(?:^|[\s/])device-plugin\b")
_WHOLE = re.compile(r"-?[0-9]{1,6}\Z")


@dataclass(frozen=True, slots=True)
class DevicePlugin:
    """Its arguments, the last of a name."""

    path: Path
    arguments: Mapping[str, str]

    @property
    def hot_reset(self) -> int | None:
        """`-hotReset` as a number."""
        value = self.arguments.get("hotReset", "-1")
        return int(value) if _WHOLE.match(value) else None


def read(subject: Subject) -> DevicePlugin | None:
    """The device plugin in `subject`, or None."""
    if subject.kind != "DaemonSet":
        return None
    holder: object = subject.body
    for part in CONTAINERS:
        holder = holder.get(part) if isinstance(holder, Mapping) else None
    for number, container in enumerate(_as_list(holder)[:50]):
        if not isinstance(container, dict):
            continue
        words = [
            word
            for key in ("command", "args")
            for word in _as_list(container.get(key))
            if isinstance(word, str)
        ]
        text = re.sub(r"(^|\s)#[^\n]*", " ", "\n".join(words)[:65_536])
        if _PROGRAM.search(text):
            return DevicePlugin((*CONTAINERS, number, "args"), dict(_ARGUMENT.findall(text)))
    return None


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def knows(subject: Subject) -> bool:
    """Whether it is one."""
    return read(subject) is not None


def look(subject: Subject) -> Sheet:
    """All its rules."""
    plugin = read(subject)
    if plugin is None:
        return Sheet(subject.title)
    remarks = tuple(remark for rule in PLUGIN_RULES for remark in rule.remarks(plugin, subject.places))
    return Sheet(subject.title, NAME, remarks=remarks)


def hot_reset_value(plugin: DevicePlugin) -> Hits:
    """A `-hotReset` that is none of its numbers."""
    return _word(plugin, "hotReset")


def hot_reset_deprecated(plugin: DevicePlugin) -> Hits:
    """`-hotReset=1`."""
    if plugin.hot_reset == 1:
        yield Hit(plugin.path, "has -hotReset=1 (graceful fault tolerance)")


def volcano_type(plugin: DevicePlugin) -> Hits:
    """No `-volcanoType=true`."""
    if plugin.arguments.get("volcanoType", "false") != "true":
        yield Hit(plugin.path, "does not have -volcanoType=true")


def auto_stowing(plugin: DevicePlugin) -> Hits:
    """`-autoStowing` switched off."""
    value = plugin.arguments.get("autoStowing", "true")
    if value != "true":
        yield Hit(plugin.path, f"has -autoStowing={value[:20]}")


def list_watch_period(plugin: DevicePlugin) -> Hits:
    """A `-listWatchPeriod` outside 3 to 1800."""
    row = parameter("listWatchPeriod")
    value = plugin.arguments.get(row.name)
    if value is not None and not (_WHOLE.match(value) and row.allows(int(value))):
        yield Hit(plugin.path, f"has -listWatchPeriod={value[:20]}")


def _word(plugin: DevicePlugin, name: str) -> Hits:
    value, known = plugin.arguments.get(name), parameter(name).values
    if value is not None and value not in known:
        yield Hit(plugin.path, f"has -{name}={quoted(value)}, none of {listed(known)}")


PluginRule = Rule[DevicePlugin]
PLUGIN_RULES: tuple[PluginRule, ...] = (
    PluginRule(
        "hot-reset-value",
        Weight.ERROR,
        hot_reset_value,
        "the device plugin does not start with it",
        "write -1, 0 or 2",
        about=("hotReset",),
    ),
    PluginRule(
        "hot-reset-deprecated",
        Weight.WARNING,
        hot_reset_deprecated,
        "graceful tolerance ended with PyTorch 7.2.RC1 and MindSpore 7.1.RC1; device plugins of today "
        "refuse it, and it excludes process-level recovery",
        "write -hotReset=2",
        about=("hotReset",),
    ),
    PluginRule(
        "volcano-type",
        Weight.ERROR,
        volcano_type,
        "rescheduling needs Volcano to place the cards",
        "write -volcanoType=true",
        about=("volcanoType",),
    ),
    PluginRule(
        "auto-stowing",
        Weight.WARNING,
        auto_stowing,
        "a card that healed is then not offered again until somebody does it by hand",
        "write -autoStowing=true",
        about=("autoStowing",),
    ),
    PluginRule(
        "list-watch-period",
        Weight.ERROR,
        list_watch_period,
        "it is 3 to 1800 seconds",
        "write -listWatchPeriod=5",
        about=("listWatchPeriod",),
    ),
)
