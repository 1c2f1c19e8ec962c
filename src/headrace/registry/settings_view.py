"""What counts for a subject: its own settings and mode, then those of its context, the global context and the registry's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.registry import names
from headrace.registry.content import checked_metadata, checked_rule_set
from headrace.registry.errors import RegistryError, invalid_level, unprocessable
from headrace.registry.formats.compatibility import Level
from headrace.registry.state import State

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
READ_ONLY = ("READONLY", "READONLY_OVERRIDE")
TAKING_IDS = ("IMPORT", "FORWARD")
_GLOBAL = names.prefix_of(names.GLOBAL_CONTEXT)
_FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "aliasForDeks", "compatibilityGroup", "compatibilityPolicy")
_POLICIES = ("STRICT", "LENIENT")


def scopes(subject: str | None) -> list[str | None]:
    """From the innermost to the outermost."""
    found: list[str | None] = [] if subject is None else [subject]
    context = names.DEFAULT_CONTEXT if subject is None else names.context_of(subject)
    found.append(None if context == names.DEFAULT_CONTEXT else names.prefix_of(context))
    return list(dict.fromkeys([*found, _GLOBAL]))


def config_in_scope(state: State, subject: str | None, default: Level) -> dict[str, Any]:
    found: dict[str, Any] = {"compatibilityLevel": str(default)}
    for scope in reversed(scopes(subject)):
        found |= state.config(scope) or {}
    return {name: value for name, value in found.items() if name != "alias" or subject is not None}


def mode_in_scope(state: State, subject: str | None) -> str:
    for scope in scopes(subject):
        if mode := state.mode(scope):
            return mode
    return "READWRITE"


def level_of(config: Mapping[str, Any]) -> Level:
    return Level.named(str(config.get("compatibilityLevel"))) or Level.BACKWARD


def updated(before: Mapping[str, Any] | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """Settings after a request: values it names are set, those it names as null are removed. RegistryError for invalid ones."""
    found = dict(before or {})
    for name, value in request.items():
        kept, checked = _checked(name, value)
        if checked is None:
            found.pop(kept, None)
        else:
            found[kept] = checked
    return found


def _checked(name: str, value: Any) -> tuple[str, Any]:
    if name in ("compatibility", "compatibilityLevel"):
        if value is None:
            return "compatibilityLevel", None
        level = Level.named(value) if isinstance(value, str) else None
        if level is None:
            raise invalid_level()
        return "compatibilityLevel", str(level)
    if value is None:
        return name, None
    if name in _FLAGS:
        if not isinstance(value, bool):
            raise unprocessable(f"{name} is true or false")
    elif name in _TEXTS:
        if not isinstance(value, str):
            raise unprocessable(f"{name} is text")
        if name == "compatibilityPolicy":
            value = value.upper()
            if value not in _POLICIES:
                raise RegistryError(
                    42203, f"Invalid compatibility policy. Valid values are {', '.join(_POLICIES)}"
                )
    elif name in ("defaultMetadata", "overrideMetadata"):
        value = checked_metadata(value)
    elif name in ("defaultRuleSet", "overrideRuleSet"):
        value = checked_rule_set(value)
    else:
        raise unprocessable(f"Unrecognized field: {name}")
    return name, value


def as_request(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in the form of a request, which is how an update is answered."""
    return {
        "compatibility" if name == "compatibilityLevel" else name: value for name, value in config.items()
    }
