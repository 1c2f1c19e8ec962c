"""Names of subjects: `orders-value` in the default context, `:.staging:orders-value` in another.

A context without a subject, `:.staging:`, names the context itself, for settings and modes; `:.__GLOBAL:` is above all contexts.
"""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
_WILDCARD = ":*:"
_RESERVED = ("__GLOBAL", "__EMPTY")


class Name(NamedTuple):
    context: str
    subject: str

    @property
    def qualified(self) -> str:
        return prefix_of(self.context) + self.subject


def prefix_of(context: str) -> str:
    """What the names of a context's subjects begin with; the context's own name."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def parse(text: str) -> Name:
    if text.startswith(":."):
        context, colon, subject = text[1:].partition(":")
        return Name(context, subject if colon else "")
    if text.startswith(_WILDCARD):
        return Name("*", text[len(_WILDCARD) :])
    return Name(DEFAULT_CONTEXT, text)


def normalize(text: str) -> str:
    return parse(text).qualified


def context_of(subject: str) -> str:
    return parse(subject).context if subject.startswith(":") else DEFAULT_CONTEXT


def is_default_context(text: str) -> bool:
    """Whether it stands for what is not named at all: the top level of settings."""
    return parse(text) == Name(DEFAULT_CONTEXT, "")


def is_context(text: str) -> bool:
    return not parse(text).subject


def is_within(subject: str, scope: str | None) -> bool:
    """Whether a scope covers a subject: the subject itself, its context, everything (None), or the global context."""
    if scope is None or subject == scope:
        return True
    name = parse(scope)
    return not name.subject and (name.context == GLOBAL_CONTEXT or name.context == context_of(subject))


def beside(parent: str, subject: str) -> str:
    """A subject as the schema of `parent` means it: in its context, unless it names one."""
    name = parse(subject)
    context = context_of(parent)
    return name.qualified if name.context != DEFAULT_CONTEXT else Name(context, name.subject).qualified


def is_valid(text: str, *, setting: bool = False) -> bool:
    """Whether a subject can be registered, or, with `setting`, can have settings and a mode."""
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
        return False
    name = parse(text)
    if name.subject in _RESERVED or (not setting and name.context == GLOBAL_CONTEXT):
        return False
    return setting or name.subject not in ("", "*")
