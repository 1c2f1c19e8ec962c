"""Calls without the interface: `$invoke(method, types, arguments)` with maps in place of objects.

On the provider's side the named method is found and its arguments made from the maps; what it returns goes back as
maps. On the consumer's side a typed call to a provider that is itself generic is turned into such a call.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from headrace.services.errors import RpcCode, RpcException
from headrace.services.field_names import STRICT, is_strict, refuse_unknown_fields
from headrace.services.filters.base import Filter
from headrace.services.generic import (
    GENERIC_TYPES,
    INVOKE,
    GenericService,
    generalize,
    generic_exception,
    is_generic_call,
)
from headrace.services.hessian2 import Hessian2Error, Typed
from headrace.services.invocation import Invocation, Result
from headrace.services.javatypes import split_descriptor
from headrace.services.suggest import suggestion


class GenericFilter(Filter):
    """Serves `$invoke` from the interface's own methods."""

    GROUPS = frozenset({"provider"})
    ORDER = -20_000
    SUSPENDS = False

    def invoke(self, invocation: Invocation) -> Coroutine[Any, Any, Result]:
        if is_generic_call(invocation) and self.interface.cls is not GenericService:
            return self._invoke_by_name(invocation)
        return self.inner.invoke(invocation)

    async def _invoke_by_name(self, invocation: Invocation) -> Result:
        name, types, arguments = invocation.arguments
        kind = invocation.attachment("generic")
        if kind not in ("", "true"):
            raise RpcException(f"Generic serialization [{kind}] is not supported here: use generic=true")
        if not isinstance(name, str) or not isinstance(arguments, list | tuple | None):
            raise RpcException("$invoke takes a method name, a list of types and a list of arguments")
        method = self.interface.methods.get(name.strip())
        if method is None:
            raise RpcException(
                f"No such method {name} in class {self.interface.name}."
                f"{suggestion(name, sorted(self.interface.methods))}"
            )
        if isinstance(types, list | tuple) and len(types) != len(method.parameters):
            raise RpcException(f"$invoke of {name}: {len(types)} types are given for {method.signature}")
        given = [None] * len(method.parameters) if arguments is None else list(arguments)
        try:
            if is_strict(invocation):
                refuse_unknown_fields(given, method)
            values = method.convert(given)
        except TypeError as error:
            raise RpcException(f"$invoke of {name}: {error}") from None
        result = await self.inner.invoke(
            Invocation(
                method.name,
                method.parameter_types,
                values,
                invocation.attachments,
                method=method,
                remote_address=invocation.remote_address,
                local_address=invocation.local_address,
            )
        )
        if result.exception is not None:
            result.exception = generic_exception(result.exception)
        else:
            try:
                result.value = generalize(result.value)
            except Hessian2Error as error:
                raise RpcException(f"$invoke of {name}: the result cannot be sent: {error}") from None
        return result


class GenericImplFilter(Filter):
    """Turns typed calls into `$invoke` where the provider offers nothing else."""

    GROUPS = frozenset({"consumer"})
    KEY = "generic"
    ORDER = 20_000
    SUSPENDS = False

    async def invoke(self, invocation: Invocation) -> Result:
        if is_generic_call(invocation):
            invocation.attachments["generic"] = self.url.get("generic")
            invocation.attachments.setdefault(STRICT, "true")  # names that people type
            return await self.inner.invoke(invocation)
        types = split_descriptor(invocation.parameter_types)
        try:
            arguments = [generalize(argument) for argument in invocation.arguments]
        except Hessian2Error as error:
            raise RpcException(
                f"Failed to invoke {invocation.method_name}: {error}", RpcCode.SERIALIZATION
            ) from None
        call = Invocation(
            INVOKE,
            GENERIC_TYPES,
            [
                invocation.method_name,
                Typed(types, "[string"),
                Typed(arguments, "[object"),
            ],
            {**invocation.attachments, "generic": self.url.get("generic")},
        )
        return await self.inner.invoke(call)
