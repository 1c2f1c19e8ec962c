"""One call and its outcome, on either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.services.hessian2 import brief

if TYPE_CHECKING:
    from headrace.services.interface import MethodModel

Attachments = dict[str, object]


class Invocation:
    """What is to be called: method, arguments and the attachments that travel beside them."""

    __slots__ = (
        "arguments",
        "attachments",
        "local_address",
        "method",
        "method_name",
        "one_way",
        "parameter_types",
        "remote_address",
    )

    def __init__(
        self,
        method_name: str,
        parameter_types: str,
        arguments: Sequence[object],
        attachments: Attachments | None = None,
        *,
        method: MethodModel | None = None,
        one_way: bool = False,
        remote_address: str = "",
        local_address: str = "",
    ) -> None:
        self.method_name = method_name
        self.parameter_types = parameter_types  # Java's descriptor of the parameters
        self.arguments = arguments
        self.attachments: Attachments = {} if attachments is None else attachments
        self.method = method  # None until looked up: a generic call names its method only inside
        self.one_way = one_way
        self.remote_address = remote_address
        self.local_address = local_address

    def attachment(self, key: str) -> str:
        value = self.attachments.get(key)
        return value if isinstance(value, str) else ""

    def __repr__(self) -> str:
        return (
            f"RpcInvocation [methodName={self.method_name:.200}, parameterTypes={self.parameter_types:.200}, "
            f"arguments={brief(self.arguments, 200)}, attachments={brief(self.attachments, 400)}]"
        )


class Result:
    """What the implementation returned or raised, and the attachments of the reply."""

    __slots__ = ("attachments", "exception", "value")

    def __init__(
        self,
        value: object = None,
        exception: BaseException | None = None,
        attachments: Attachments | None = None,
    ) -> None:
        self.value = value
        self.exception = exception
        self.attachments = attachments

    def unwrap(self) -> object:
        if self.exception is not None:
            raise self.exception
        return self.value
