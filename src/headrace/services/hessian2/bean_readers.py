"""Readers of objects: registered classes, Java's own, exceptions, and plain JavaObjects for all others.

An object is made before its fields are read, so that a field can refer back to it. Nothing is looked up by a name
from the wire but the tables of registered and built-in classes.
"""

from __future__ import annotations

from typing import Any

from headrace.services.hessian2.brief import brief
from headrace.services.hessian2.classes import JavaClass
from headrace.services.hessian2.convert import Converter, converter_for, exact_type, initialise
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.input import Input, ObjectReader
from headrace.services.hessian2.java_builders import Builder
from headrace.services.hessian2.readers import READERS
from headrace.services.hessian2.values import JavaException, JavaObject, StackTraceElement


def java_object_reader(class_name: str, names: tuple[str, ...]) -> ObjectReader:
    def read(source: Input) -> object:
        result = JavaObject(class_name)
        source.enter(result)
        fields = result.fields
        for name in names:
            fields[name] = source.read()
        source.leave()
        return result

    return read


def built_reader(class_name: str, builder: Builder, names: tuple[str, ...]) -> ObjectReader:
    def read(source: Input) -> object:
        number = source.enter(None)
        fields = {name: source.read() for name in names}
        source.leave()
        try:
            value = builder(fields)
        except Hessian2Error:
            raise
        except Exception as error:
            raise Hessian2Error(f"The fields of a {class_name} make no value: {error}.") from None
        source.refs[number] = value
        return value

    return read


def enum_reader(java_class: JavaClass, names: tuple[str, ...]) -> ObjectReader:
    members = java_class.type.__members__  # type: ignore[attr-defined]

    def read(source: Input) -> object:
        number = source.enter(None)
        fields = {name: source.read() for name in names}
        source.leave()
        name = fields.get("name")
        if not isinstance(name, str) or name not in members:
            raise Hessian2Error(f"{java_class.name} has no constant {brief(name, 80)} here.")
        source.refs[number] = value = members[name]
        return value

    return read


def bean_reader(java_class: JavaClass, names: tuple[str, ...]) -> ObjectReader:
    cls: Any = java_class.type
    by_name = {each.java_name: each for each in java_class.fields}
    # Per field on the wire: its argument of `__init__`, the type that needs no conversion, and the conversion.
    plan: list[tuple[str | None, type | None, Converter | None]] = []
    for name in names:
        field = by_name.get(name)
        if field is None:
            plan.append((None, None, None))
        else:
            convert = converter_for(field.annotation) if java_class.kind == "bean" else None
            plan.append((field.argument, exact_type(field.annotation), convert))
    missing = {
        each.argument: None for each in java_class.fields if each.required and each.java_name not in names
    }

    def read(source: Input) -> object:
        bean = cls.__new__(cls)
        source.enter(bean)
        arguments: dict[str, Any] = dict(missing)
        data = source.data
        for argument, exact, convert in plan:
            pos = source.pos
            tag = data[pos]
            source.pos = pos + 1
            value = READERS[tag](source, tag)
            if argument is not None:
                if type(value) is not exact and convert is not None and value is not None:
                    value = convert(value)
                arguments[argument] = value
        source.leave()
        initialise(java_class, bean, arguments)
        return bean

    return read


def exception_reader(class_name: str, java_class: JavaClass | None, names: tuple[str, ...]) -> ObjectReader:
    """Throwables. A registered class is made without its `__init__`, whose arguments only the provider knew."""
    cls: type[BaseException] = JavaException if java_class is None else java_class.type
    by_name = {each.java_name: each for each in java_class.fields} if java_class else {}

    def read(source: Input) -> object:
        error = cls.__new__(cls)
        source.enter(error)
        fields = {name: source.read() for name in names}
        source.leave()
        message = fields.pop("detailMessage", None)
        cause = fields.pop("cause", None)
        trace = fields.pop("stackTrace", None)
        fields.pop("suppressedExceptions", None)
        elements = (
            [each for each in trace if type(each) is StackTraceElement] if isinstance(trace, list) else []
        )
        if not isinstance(cause, BaseException) or cause is error:
            cause = None  # Java's mark of "no cause" is the exception itself
        if not isinstance(message, str):
            message = None
        if isinstance(error, JavaException):
            JavaException.__init__(
                error, class_name, message, stack_trace=elements, cause=cause, fields=fields
            )
            return error
        error.args = () if message is None else (message,)
        error.__cause__ = cause
        error.__dict__["java_stack_trace"] = elements
        for name, value in fields.items():
            if (field := by_name.get(name)) is not None:
                convert = converter_for(field.annotation)
                setattr(error, field.attribute, value if convert is None or value is None else convert(value))
        return error

    return read
