"""A service's interface as a table: each public method with its wire name, parameters, types and converters.

Built once per class from annotations; calls only look things up. `say_hello` is known on the wire as `sayHello`;
`@method(name=…)` says otherwise.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.services.errors import ConfigError
from headrace.services.hessian2 import Hessian2Error, converter_for, writer_for
from headrace.services.javatypes import descriptor, java_type

F = TypeVar("F", bound=Callable[..., Any])
Converter = Callable[[Any], Any]
Writer = Callable[[Any, Any], None]
REQUIRED: object = inspect.Parameter.empty
NAME_ATTRIBUTE = "__service_method__"
INTERFACE_ATTRIBUTE = "__service_interface__"


def method(*, name: str) -> Callable[[F], F]:
    """Give a method another name on the wire than its own in camelCase."""

    def mark(function: F) -> F:
        setattr(function, NAME_ATTRIBUTE, name)
        return function

    return mark


def interface(name: str) -> Callable[[type], type]:
    """Name a class's interface as Java knows it: `@interface("com.acme.OrderService")`."""

    def mark(cls: type) -> type:
        setattr(cls, INTERFACE_ATTRIBUTE, name)
        return cls

    return mark


def interface_name(cls: type) -> str:
    return str(cls.__dict__.get(INTERFACE_ATTRIBUTE) or f"{cls.__module__}.{cls.__qualname__}")


def camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


@dataclass(frozen=True, slots=True)
class ParameterModel:
    """One parameter: its Python name, annotation, Java type, and how values of it are read and written."""

    name: str
    annotation: object
    java_type: str
    convert: Converter | None
    write: Writer | None
    default: object  # `REQUIRED` when there is none

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class MethodModel:
    """One method of an interface."""

    name: str  # on the wire
    attribute: str  # in Python
    parameters: tuple[ParameterModel, ...]
    returns: object
    return_type: str
    convert_result: Converter | None
    write_result: Writer | None
    is_async: bool
    summary: str
    parameter_types: str = field(init=False)  # Java's descriptor, as a call names its parameters

    def __post_init__(self) -> None:
        joined = "".join(descriptor(parameter.java_type) for parameter in self.parameters)
        object.__setattr__(self, "parameter_types", joined)

    @property
    def signature(self) -> str:
        """`place(com.acme.Order order)`: what a caller without the interface has to give."""
        return f"{self.name}({', '.join(f'{p.java_type} {p.name}' for p in self.parameters)})"

    def bind(self, args: Sequence[object], kwargs: dict[str, object]) -> list[object]:
        """Positional and keyword arguments in the order of the parameters."""
        values = list(args)
        if len(values) > len(self.parameters):
            raise TypeError(
                f"{self.attribute}() takes {_arguments(len(self.parameters))}, {len(values)} given: {self.signature}"
            )
        for parameter in self.parameters[len(values) :]:
            if parameter.name in kwargs:
                values.append(kwargs.pop(parameter.name))
            elif parameter.required:
                raise TypeError(f"{self.attribute}() lacks the argument {parameter.name!r}: {self.signature}")
            else:
                values.append(parameter.default)
        if kwargs:
            raise TypeError(f"{self.attribute}() has no argument {next(iter(kwargs))!r}: {self.signature}")
        return values

    def convert(self, arguments: Sequence[object]) -> Sequence[object]:
        """The arguments as the annotations want them; raises TypeError with the parameter's name."""
        parameters = self.parameters
        if len(arguments) != len(parameters):
            raise TypeError(
                f"{self.name} takes {_arguments(len(parameters))}, {len(arguments)} sent: {self.signature}"
            )
        converted = None
        for index, parameter in enumerate(parameters):
            if parameter.convert is not None:
                try:
                    value = parameter.convert(arguments[index])
                except Hessian2Error as error:
                    raise TypeError(f"the argument {parameter.name!r} does not fit: {error}") from None
                except RecursionError:
                    raise TypeError(f"the argument {parameter.name!r} is nested too deeply") from None
                if value is not arguments[index]:
                    if converted is None:
                        converted = list(arguments)
                    converted[index] = value
        return arguments if converted is None else converted


@dataclass(frozen=True, slots=True)
class InterfaceModel:
    """An interface: its name as consumers know it and its methods by wire name."""

    name: str
    cls: type | None
    methods: dict[str, MethodModel]

    def find(self, name: str) -> MethodModel | None:
        return self.methods.get(name) or self.methods.get(camel_case(name))


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def describe(cls: type, name: str = "") -> InterfaceModel:
    """Read a class's public methods and their annotations."""
    methods: dict[str, MethodModel] = {}
    for attribute, function in _functions(cls):
        model = _describe_method(cls, attribute, function)
        if model.name in methods:
            raise ConfigError(
                f"{cls.__qualname__} has two methods that are {model.name!r} on the wire "
                f"({methods[model.name].attribute} and {attribute}): rename one or mark it with @method(name=…)"
            )
        methods[model.name] = model
    return InterfaceModel(name or interface_name(cls), cls, methods)


def _functions(cls: type) -> Iterator[tuple[str, types.FunctionType]]:
    seen = set()
    for base in cls.__mro__:
        if base is object or base.__module__ in ("typing", "abc"):
            continue
        for attribute, member in vars(base).items():
            if attribute not in seen and not attribute.startswith("_"):
                seen.add(attribute)
                if isinstance(member, types.FunctionType):
                    yield attribute, member


def _describe_method(cls: type, attribute: str, function: types.FunctionType) -> MethodModel:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(
            f"an annotation of {cls.__qualname__}.{attribute} cannot be read: {error}"
        ) from None
    parameters = []
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(
                f"{cls.__qualname__}.{attribute} has the parameter {parameter.name!r}, which cannot travel: "
                "an exported method takes plain positional parameters"
            )
        annotation = hints.get(parameter.name, object)
        parameters.append(
            ParameterModel(
                parameter.name,
                annotation,
                java_type(annotation),
                converter_for(annotation),
                writer_for(annotation),
                parameter.default,
            )
        )
    returns = hints.get("return", object)
    return MethodModel(
        name=getattr(function, NAME_ATTRIBUTE, None) or camel_case(attribute),
        attribute=attribute,
        parameters=tuple(parameters),
        returns=returns,
        return_type=java_type(returns),
        convert_result=converter_for(returns),
        write_result=writer_for(returns),
        is_async=inspect.iscoroutinefunction(function),
        summary=(inspect.getdoc(function) or "").partition("\n")[0],
    )
