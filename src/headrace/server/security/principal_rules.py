"""`ssl.principal.mapping.rules`: how the name in a certificate becomes a user's name, with Kafka's `RULE:pattern/replacement/[LU]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_PART = r"(?:\\.|[^\\/])*"
_RULE = rf"DEFAULT|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)"
_NEXT = re.compile(rf"\s*(?:{_RULE})?\s*(?:,|$)", re.DOTALL)
_REFERENCE = re.compile(r"\$(\d)")
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class NoRule(ValueError):
    """No rule applies to a name."""


class BadRule(ValueError):
    """The sentence for the user; it begins with the setting's name."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule."""

    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str]
    case: Callable[[str], str]

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        return self.case(self.pattern.sub(self.replacement, name))


class PrincipalRules:
    """The first rule whose pattern matches the whole name decides."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._rules: list[_Rule | None] = []
        """None for DEFAULT, which leaves the name as it is."""
        position = 0
        text = text.strip()
        while position < len(text):
            found = _NEXT.match(text, position)
            if found is None:
                raise BadRule(
                    f"ssl.principal.mapping.rules: {text[position:]!r} is no rule; a rule is DEFAULT or "
                    "RULE:pattern/replacement/ with L or U behind it for lower or upper case, and a comma between two."
                )
            position = found.end()
            if found["pattern"] is not None:
                self._rules.append(_rule(found["pattern"], found["replacement"], found["case"]))
            elif "DEFAULT" in found[0]:
                self._rules.append(None)

    def name_of(self, distinguished_name: str) -> str:
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRule(f"no rule of ssl.principal.mapping.rules ({self._text}) applies to {distinguished_name}")


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        # Java and Python differ in how a group is named.
        compiled = re.compile(re.sub(r"\(\?<(?=[a-zA-Z])", "(?P<", pattern))
    except re.error as error:
        raise BadRule(
            f"ssl.principal.mapping.rules: the pattern {pattern} cannot be read: {error}."
        ) from None
    plain = re.sub(r"\\(.)", r"\1", replacement)

    def replaced(match: re.Match[str]) -> str:
        def group(reference: re.Match[str]) -> str:
            number = int(reference[1])
            return (match[number] or "") if number <= compiled.groups else reference[0]

        return _REFERENCE.sub(group, plain)

    return _Rule(compiled, replaced, _CASES[case])
