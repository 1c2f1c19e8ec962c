"""What the three formats have in common: a parsed schema, its differences to another, and limits on what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from headrace.registry.errors import InvalidSchema

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

MAX_DEPTH = 100
"""Deeper nesting than this is refused: nobody writes it, and each level costs stack."""


class Reference(NamedTuple):
    """A name inside a schema, and the subject and version that stand for it."""

    name: str
    subject: str
    version: int


class Difference(NamedTuple):
    """One difference that matters. `text` has two places, for what the reader and the writer are called."""

    text: str

    def told(self, reader: str, writer: str) -> str:
        return self.text.replace("%s", reader, 1).replace("%s", writer, 1)


class Parsed(Protocol):
    """A schema that was read, with everything it refers to."""

    @property
    def kind(self) -> str:
        """AVRO, JSON or PROTOBUF."""

    @property
    def canonical(self) -> str:
        """The text under which it is kept: how it was typed does not matter."""

    def normalized(self) -> str:
        """A text in which the order of what has no order does not matter either."""

    def formatted(self, format: str) -> str:
        """The text in one of the format's own output formats; the canonical one for a name it does not know."""

    def inlined(self) -> str | None:
        """A text that two schemas share which differ in what they take from references only; None where there are none."""

    def differences_to(self, writer: Parsed, *, lenient: bool = False) -> Sequence[Difference]:
        """Why this schema cannot read what `writer`, of the same kind, wrote; empty when it can. `lenient` counts for JSON only."""


class Reader(Protocol):
    """Reads the schemas of one format."""

    def __call__(self, text: str, references: Mapping[str, str], *, new: bool) -> Parsed:
        """InvalidSchema when it is none. `references` are texts by name, those first that others refer to; with `new`, also what
        older registries let through is checked."""


def check_depth(document: Json) -> None:
    """InvalidSchema for a document that is nested too deeply."""
    level: list[Json] = [document]
    for _ in range(MAX_DEPTH):
        below: list[Json] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
        if not below:
            return
        level = below
    raise InvalidSchema(f"it is nested more than {MAX_DEPTH} levels deep")
