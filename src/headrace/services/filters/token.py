"""Refuses calls that do not carry the service's token, so that consumers cannot go around the registry."""

from __future__ import annotations

import hmac

from headrace.services.errors import RpcCode, RpcException
from headrace.services.filters.base import Filter
from headrace.services.invocation import Invocation, Result
from headrace.services.invoker import Invoker


class TokenFilter(Filter):
    """Compares the `token` attachment with the exported one on every call."""

    GROUPS = frozenset({"provider"})
    KEY = "token"
    SUSPENDS = False

    def __init__(self, inner: Invoker) -> None:
        super().__init__(inner)
        self._token = _bytes(self.url.get("token"))

    async def invoke(self, invocation: Invocation) -> Result:
        given = _bytes(invocation.attachment("token"))
        if not hmac.compare_digest(self._token, given):
            raise RpcException(
                f"Invalid token! Forbid invoke remote service interface {self.interface.name} method "
                f"{invocation.method_name}() from consumer {host_of(invocation.remote_address)} "
                f"to provider {host_of(invocation.local_address)}",
                RpcCode.FORBIDDEN,
            )
        return await self.inner.invoke(invocation)


def _bytes(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")  # a token from the wire may hold anything


def host_of(address: str) -> str:
    return address.rpartition(":")[0] or address
