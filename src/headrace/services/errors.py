"""What can go wrong with a service: settings, the network, a call.

Promises: every message is one sentence a person can act on, and `RpcException.code` is Dubbo's own code.
"""

from __future__ import annotations

from enum import IntEnum

from headrace.services.hessian2 import java_class


class ServicesError(Exception):
    """The root of every error this package raises on purpose."""


class ConfigError(ServicesError, ValueError):
    """Settings are missing or wrong: one sentence for each, naming the setting."""

    def __init__(self, *mistakes: str) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class RegistryError(ServicesError):
    """A registry refused or could not be reached."""


class RpcCode(IntEnum):
    """Why a call failed, in Dubbo's numbers."""

    UNKNOWN = 0
    NETWORK = 1
    TIMEOUT = 2
    BIZ = 3
    FORBIDDEN = 4
    SERIALIZATION = 5
    NO_INVOKER = 6
    LIMIT_EXCEEDED = 7


@java_class("org.apache.dubbo.rpc.RpcException")
class RpcException(ServicesError):
    """A call did not happen or its answer was lost; `code` says which.

    The message is Dubbo's, with everybody who had a part in the call; `reason` is only what went wrong, at its root.
    """

    code: int

    def __init__(self, message: str, code: RpcCode = RpcCode.UNKNOWN, *, reason: str = "") -> None:
        super().__init__(message)
        self.code = int(code)
        self._reason = reason

    @property
    def reason(self) -> str:
        return getattr(self, "_reason", "") or str(self)  # one that came over the wire has no part of its own
