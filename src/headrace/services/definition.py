"""A service as its provider described it in the metadata report, and whether a call fits that description.

Dubbo's own providers ignore fields they do not know and answer other mistakes with an exception of Java's reflection,
so a caller who types a call compares it first. What a description does not say is left to the provider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.services.errors import ServicesError
from headrace.services.hessian2.classes import camel_case
from headrace.services.java_conversion import BOOLEANS, FRACTIONS, WHOLE, java_converts, short_name
from headrace.services.suggest import suggestion

_PRIMITIVE = ("int", "long", "short", "byte", "float", "double", "boolean", "char")
_JAVAS_OWN = ("java.", "javax.")  # described by their private fields, but never sent as objects
_LISTS = re.compile(r"(java\.util\.\w*(List|Set|Collection|Queue)|java\.lang\.Iterable)$")
_MAPS = re.compile(r"java\.util\.(concurrent\.)?\w*Map$")

Converts = Callable[[object, str], bool]
"""Whether a provider makes a value that is not of a Java type into one."""


def _nothing(_value: object, _base: str) -> bool:
    return False


class CallMistake(ServicesError):
    """A call that the service cannot answer, in one sentence."""


@dataclass(frozen=True, slots=True)
class MethodDefinition:
    """One method: its name and the types of its parameters as the description writes them."""

    name: str
    parameter_types: tuple[str, ...]

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.parameter_types)})"

    @property
    def raw_types(self) -> list[str]:
        """The types as `$invoke` takes them, without what they are generic in."""
        return [_split(name)[0] for name in self.parameter_types]


class ServiceDefinition:
    """The methods and types of one service."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        self.interface = str(described.get("canonicalName", ""))
        self.methods = [
            MethodDefinition(str(each.get("name")), tuple(map(str, each.get("parameterTypes") or ())))
            for each in described.get("methods") or ()
        ]
        self._types = {str(each.get("type")): each for each in described.get("types") or ()}
        # A Python provider takes order_id for orderId; Java's turns "5" into a number where one is declared.
        self._is_python = "headrace" in (described.get("parameters") or {})

    def match(
        self, name: str, arguments: Sequence[object], types: Sequence[str] | None = None
    ) -> MethodDefinition:
        """The method a call is for; raises CallMistake when there is none or the arguments do not fit."""
        named = [method for method in self.methods if method.name == name]
        if not named:
            known = sorted({method.name for method in self.methods})
            raise CallMistake(f"{self.interface} has no method '{name}'.{suggestion(name, known)}")
        candidates = [method for method in named if types is None or method.raw_types == list(types)]
        if not candidates:
            raise CallMistake(f"No {name} takes the types given: there is {_either(named)}.")
        counted = [method for method in candidates if len(method.parameter_types) == len(arguments)]
        if not counted:
            count = "1 argument was" if len(arguments) == 1 else f"{len(arguments)} arguments were"
            raise CallMistake(f"{count} given, but the method is {_either(candidates)}.")
        mistakes = [self._mistake(method, arguments) for method in counted]
        fitting = [method for method, mistake in zip(counted, mistakes, strict=True) if mistake is None]
        if not fitting and not self._is_python:
            fitting = [
                method for method in counted if self._mistake(method, arguments, java_converts) is None
            ]
        if len(fitting) > 1:
            raise CallMistake(f"{name} is overloaded: name the types of one of {_either(fitting)}.")
        if not fitting:
            raise CallMistake(mistakes[0] or "")
        return fitting[0]

    def _mistake(
        self, method: MethodDefinition, arguments: Sequence[object], converts: Converts = _nothing
    ) -> str | None:
        for number, (value, kind) in enumerate(zip(arguments, method.parameter_types, strict=True), 1):
            problem = self._problem(value, kind, converts)
            if problem is not None:
                return f"Argument {number} of {method.signature} does not fit: {problem}"
        return None

    def _problem(self, value: object, kind: str, converts: Converts) -> str | None:
        """What is wrong with a JSON value where a Java type is declared; None also where that cannot be known."""
        base, arguments = _split(kind)
        if value is None:
            return "null is not possible for a primitive type." if base in _PRIMITIVE else None
        wanted = _json_kind(base)
        if wanted and _json_kind_of(value) not in wanted and not converts(value, base):
            return f"{wanted[0]} is expected for {kind}, not {_json_kind_of(value)}."
        if isinstance(value, list) and (base.endswith("[]") or _LISTS.match(base)):
            inner = base[:-2] if base.endswith("[]") else arguments[0] if len(arguments) == 1 else ""
            problems = (self._problem(item, inner, converts) for item in value) if inner else iter(())
            return next((problem for problem in problems if problem), None)
        if isinstance(value, dict) and _MAPS.match(base):
            problems = (
                (self._problem(item, arguments[1], converts) for item in value.values())
                if len(arguments) == 2
                else iter(())
            )
            return next((problem for problem in problems if problem), None)
        return self._bean_problem(value, base, converts)

    def _bean_problem(self, value: object, base: str, converts: Converts) -> str | None:
        described = self._types.get(base)
        members = (described or {}).get("enum") or (described or {}).get("enums")
        if members and isinstance(value, str) and value not in members:
            return f"{base} has no member '{value}'.{suggestion(value, members)}"
        properties = (described or {}).get("properties")
        if not properties or not isinstance(properties, Mapping) or base.startswith(_JAVAS_OWN):
            return None
        if not isinstance(value, dict):
            return f"an object is expected for {base}, not {_json_kind_of(value)}."
        for key, item in value.items():
            if key == "class":
                continue
            known = properties.get(key)
            if known is None and self._is_python:
                known = properties.get(camel_case(key))
            if known is None:
                return f"{base} has no field '{key}'.{suggestion(key, properties)}"
            problem = self._problem(item, _type_of(known), converts)
            if problem is not None:
                return f"{key}: {problem}"
        return None


def _split(kind: str) -> tuple[str, list[str]]:
    """`java.util.Map<java.lang.String, com.acme.Order>` as its base and its arguments."""
    base, bracket, rest = kind.partition("<")
    if not bracket:
        return base.strip(), []
    arguments, depth, start = [], 0, 0
    inner = rest.rpartition(">")[0]
    for position, character in enumerate(inner + ","):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            arguments.append(inner[start:position].strip())
            start = position + 1
    return base.strip(), arguments


def _type_of(described: object) -> str:
    """The type of a field: Dubbo 3 writes its name alone, Dubbo 2.7 an object around it."""
    return str((described.get("type") if isinstance(described, Mapping) else described) or "")


def _either(methods: Sequence[MethodDefinition]) -> str:
    return " or ".join(method.signature for method in methods)


def _json_kind(base: str) -> tuple[str, ...]:
    """Which JSON values a Java type takes, the usual one first; none where it depends."""
    short = short_name(base)
    if short in WHOLE:
        return ("a whole number",)
    if short in FRACTIONS:
        return ("a number", "a whole number", *(("a text",) if short == "BigDecimal" else ()))
    if short in BOOLEANS:
        return ("true or false",)
    if short in ("String", "char", "Character"):
        return ("a text",)
    if base == "byte[]":
        return ()
    if base.endswith("[]") or _LISTS.match(base):
        return ("a list",)
    return ("an object",) if _MAPS.match(base) else ()


def _json_kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {int: "a whole number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")
