"""`mindx-dl-fault-config` and `mindx-dl-node-fault-config`: what a cluster changed in the level tables.

Each key replaces one table; an absent key means the shipped one. A key that cannot be read changes nothing:
the last good table stays (here we differ from the device plugin, which silently falls back to its defaults),
and the error says what is wrong. A deleted ConfigMap brings the shipped tables back.

Source: fault input contract §2.3-2.5, §8.1; vector V47.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mindie_ha.intake import code_tables, relations, rules
from mindie_ha.intake.code_tables import CodeTables
from mindie_ha.intake.relations import RelationRules
from mindie_ha.intake.rules import Rules
from mindie_ha.model.errors import InputError

CHIP_CONFIG = "mindx-dl-fault-config"
CHIP_NAMESPACE = "kube-system"
NODE_CONFIG = "mindx-dl-node-fault-config"
NODE_NAMESPACE = "mindx-dl"
KEY_CHIP = "faultCode.json"
KEY_SWITCH = "SwitchFaultCode.json"
KEY_RULES = "faultCustomization.json"
KEY_RELATIONS = "relationFaultCustomization.json"  # ours: in ClusterD they are files of its image
KEY_LIFETIMES = "faultDuration.json"
KEY_NODE = "NodeDConfiguration.json"

NO_RULES = Rules({}, {})
TableT = TypeVar("TableT")


@dataclass(frozen=True, slots=True)
class Customization:
    """Tables and rules in force, what was refused, and what was left out of readable tables."""

    tables: CodeTables
    rules: Rules
    relations: RelationRules
    own: Rules = NO_RULES  # of people; the shipped ones are applied by the device plugin itself
    refused: tuple[InputError, ...] = ()
    findings: tuple[str, ...] = ()


def shipped() -> Customization:
    """Nothing is changed."""
    tables = code_tables.defaults()
    frequent = rules.parse(code_tables.default_rules(), where="chip_rules.json")
    return Customization(tables, frequent, relations.shipped())


def chip_config(data: Mapping[str, str], *, last: Customization) -> Customization:
    """The ConfigMap of the device plugin on top of the shipped tables; `last` gives what is kept."""
    where = f"{CHIP_NAMESPACE}/{CHIP_CONFIG}"
    refused: list[InputError] = []
    base = shipped()

    def read(key: str, parse: Callable[[str, str], TableT], *, default: TableT, kept: TableT) -> TableT:
        if key not in data:
            return default
        try:
            return parse(data[key], f"{where}[{key}]")
        except InputError as error:
            refused.append(error)
            return kept

    chip = read(KEY_CHIP, _chip, default=base.tables.chip, kept=last.tables.chip)
    switch = read(KEY_SWITCH, _switch, default=base.tables.switch, kept=last.tables.switch)
    found = read(KEY_RULES, _rules, default=base.rules, kept=last.rules)
    joined = _relations(data, base=base.relations, kept=last.relations, refused=refused)
    tables = CodeTables(chip=chip, switch=switch, node=last.tables.node)
    findings = (
        *(chip.findings if KEY_CHIP in data else ()),
        *(switch.findings if KEY_SWITCH in data else ()),
        *(found.findings if KEY_RULES in data else ()),
        *(joined.findings if KEY_RELATIONS in data or KEY_LIFETIMES in data else ()),
    )
    own = NO_RULES if KEY_RULES not in data else last.own if found is last.rules else found
    return Customization(tables, found, joined, own, tuple(refused), findings)


def node_config(data: Mapping[str, str], *, last: Customization) -> Customization:
    """The ConfigMap of NodeD on top of the shipped table."""
    tables, refused = last.tables, ()
    where = f"{NODE_NAMESPACE}/{NODE_CONFIG}[{KEY_NODE}]"
    node = code_tables.defaults().node
    if KEY_NODE in data:
        try:
            node = code_tables.parse_node(data[KEY_NODE], where=where)
        except InputError as error:
            return Customization(tables, last.rules, last.relations, last.own, (error,))
    return Customization(
        CodeTables(tables.chip, tables.switch, node), last.rules, last.relations, last.own, refused
    )


def _relations(
    data: Mapping[str, str], *, base: RelationRules, kept: RelationRules, refused: list[InputError]
) -> RelationRules:
    """Both files of the relation rules; where only one is given the other is the shipped one."""
    if KEY_RELATIONS not in data and KEY_LIFETIMES not in data:
        return base
    rule_text, lifetime_text = relations.shipped_texts()
    try:
        return relations.parse(
            data.get(KEY_RELATIONS, rule_text),
            data.get(KEY_LIFETIMES, lifetime_text),
            where=f"{CHIP_NAMESPACE}/{CHIP_CONFIG}[{KEY_RELATIONS}]",
        )
    except InputError as error:
        refused.append(error)
        return kept


def _chip(text: str, where: str) -> code_tables.ChipCodes:
    return code_tables.parse_chip(text, where=where)


def _switch(text: str, where: str) -> code_tables.SwitchCodes:
    return code_tables.parse_switch(text, where=where)


def _rules(text: str, where: str) -> Rules:
    return rules.parse(text, where=where)
