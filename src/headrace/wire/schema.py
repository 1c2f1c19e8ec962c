"""What a message looks like in each version.

A message is one Python class for all versions of an API; its FIELDS define which versions carry which field. Encoding drops
fields that the version does not have (and writes an empty value where null is not allowed); decoding leaves such fields at
their defaults. `codec.py` compiles these tables: one reader and one writer per class and version.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", bound="Response", default="Response", covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R")

ZERO_UUID = uuid.UUID(int=0)
ALWAYS = 32767
"""The upper end of a version range that is still open."""


SECRETS = frozenset({"auth_bytes", "hmac", "salt", "salted_password"})
"""Fields whose values must not be shown."""


class Field(NamedTuple):
    name: str
    kind: str
    """bool, int8…int64, uint16, float64, string, bytes, records, uuid, or struct."""
    versions: tuple[int, int] = (0, ALWAYS)
    array: bool = False
    nullable: tuple[int, int] | None = None
    tag: int | None = None
    default: object = None
    struct: type[Message] | None = None


class Message:
    """Base of every message and of every struct inside one; equal when all fields are."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    FLEXIBLE: ClassVar[int] = ALWAYS
    """The first version with compact lengths and tagged fields."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{field.name}={'[hidden]' if field.name in SECRETS else repr(getattr(self, field.name))}"
            for field in self.FIELDS
        )
        return f"{type(self).__name__}({shown})"


class Request(Message, Generic[R]):
    """A request to a broker, with the key and the versions of its API and the class of its reply."""

    __slots__ = ()
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]

    @classmethod
    def reply_type(cls) -> type[R]:
        raise NotImplementedError


class Response(Message):
    __slots__ = ()
    API_KEY: ClassVar[int]

    @classmethod
    def failed(cls, code: int, message: str) -> Response | None:
        """A response that carries only an error; None where the response has no top-level error code."""
        names = {field.name for field in cls.FIELDS}
        if "error_code" not in names:
            return None
        response = cls()
        for name, value in (("error_code", code), ("error_message", message)):
            if name in names:
                setattr(response, name, value)
        return response
