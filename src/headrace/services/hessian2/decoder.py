"""The decoder: which object reader serves which class definition."""

from __future__ import annotations

import struct
from typing import Any

from headrace.services.hessian2.bean_readers import (
    bean_reader,
    built_reader,
    enum_reader,
    exception_reader,
    java_object_reader,
)
from headrace.services.hessian2.classes import DEFAULT_CLASSES, JavaClasses
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.input import Input, ObjectReader
from headrace.services.hessian2.java_builders import BUILDERS
from headrace.services.hessian2.readers import READERS

# Definitions come from the wire, so what is kept of them between bodies has its limits.
_MAX_KEPT = 1024
_MAX_KEPT_NAMES = 4096


class Decoder(Input):
    """Reads one body: call `decode` for each value in turn. Any error in it is a Hessian2Error."""

    __slots__ = ()

    def decode(self) -> Any:
        """The next value."""
        try:
            return self.read()
        except (IndexError, struct.error):
            raise Hessian2Error("The body ends in the middle of a value.") from None
        except RecursionError:
            raise Hessian2Error("The body is nested too deeply.") from None
        except Hessian2Error:
            raise
        except Exception as error:  # from a registered class: its __new__, __eq__, __hash__ or a property
            raise Hessian2Error(f"A value cannot be made: {type(error).__name__}: {error}") from error

    def read(self) -> Any:
        tag = self.data[self.pos]
        self.pos += 1
        return READERS[tag](self, tag)

    @property
    def remaining(self) -> int:
        """How many bytes are not read yet."""
        return len(self.data) - self.pos

    def object_reader(self, class_name: str, fields: tuple[str, ...]) -> ObjectReader:
        kept = self.classes.readers
        reader: ObjectReader | None = kept.get((class_name, fields))
        if reader is None:
            reader = self._make_reader(class_name, fields)
            known = class_name in self.classes.by_name or class_name in BUILDERS
            if known and len(kept) < _MAX_KEPT and sum(map(len, fields)) < _MAX_KEPT_NAMES:
                kept[class_name, fields] = reader
        return reader

    def _make_reader(self, class_name: str, fields: tuple[str, ...]) -> ObjectReader:
        java_class = self.classes.by_name.get(class_name)
        if java_class is not None:
            if java_class.kind == "enum":
                return enum_reader(java_class, fields)
            if java_class.kind == "exception":
                return exception_reader(class_name, java_class, fields)
            return bean_reader(java_class, fields)
        if (builder := BUILDERS.get(class_name)) is not None:
            return built_reader(class_name, builder, fields)
        if "detailMessage" in fields and "stackTrace" in fields:
            return exception_reader(class_name, None, fields)
        return java_object_reader(class_name, fields)


def decode(data: bytes | bytearray | memoryview, *, classes: JavaClasses = DEFAULT_CLASSES) -> Any:
    """The one value of a body that holds nothing else."""
    decoder = Decoder(data, classes)
    value = decoder.decode()
    if decoder.remaining:
        raise Hessian2Error(f"{decoder.remaining} bytes follow the value.")
    return value
