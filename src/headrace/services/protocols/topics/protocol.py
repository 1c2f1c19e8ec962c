"""headrace://broker:9092: a service behind topics of a Headrace or Kafka cluster.

Made for calls that must not be lost because the other end is away. The URL's host and port are the cluster's;
`bootstrap.servers` among the protocol's parameters names several, `client.config` the file with the settings of a login.
"""

from __future__ import annotations

import asyncio

from headrace.client import ClientError
from headrace.services.errors import RpcCode, RpcException
from headrace.services.interface import InterfaceModel
from headrace.services.invoker import Invoker
from headrace.services.protocols.base import Exporter, Protocol, ProtocolRuntime
from headrace.services.protocols.topics import names
from headrace.services.protocols.topics.caller import Mailbox, TopicsInvoker
from headrace.services.protocols.topics.provider import TopicsExporter
from headrace.services.url import URL


class TopicsProtocol(Protocol):
    """Exports by topic; one mailbox for each application and cluster."""

    name = "headrace"
    default_port = 9092

    def __init__(self, runtime: ProtocolRuntime) -> None:
        super().__init__(runtime)
        self._exporters: dict[TopicsExporter, None] = {}
        self._mailboxes: dict[tuple[str, str, str], Mailbox] = {}
        self._opening = asyncio.Lock()

    async def export(self, invoker: Invoker) -> Exporter:
        # An override rule exports the same service again: the new chain takes over, the old one ends.
        for before in [e for e in self._exporters if _place(e.invoker.url) == _place(invoker.url)]:
            await before.unexport()
        exporter = TopicsExporter(invoker, self.runtime, lambda gone: self._exporters.pop(gone, None))
        await exporter.start()
        self._exporters[exporter] = None
        return exporter

    async def refer(self, interface: InterfaceModel, url: URL) -> Invoker:
        application = url.get("application", "application")
        key = (names.bootstrap_servers(url), url.get(names.CLIENT_CONFIG), application)
        async with self._opening:
            mailbox = self._mailboxes.get(key)
            if mailbox is None:
                mailbox = Mailbox(url, application)
                try:
                    await mailbox.open()
                except ClientError as error:
                    await mailbox.close()
                    raise RpcException(
                        f"Failed to reach the cluster {key[0]}: {error}", RpcCode.NETWORK
                    ) from None
                self._mailboxes[key] = mailbox
            mailbox.references += 1
        return TopicsInvoker(interface, url, mailbox, lambda: self._release(key))

    async def _release(self, key: tuple[str, str, str]) -> None:
        mailbox = self._mailboxes.get(key)
        if mailbox is not None:
            mailbox.references -= 1
            if mailbox.references <= 0:
                del self._mailboxes[key]
                await mailbox.close()

    async def destroy(self) -> None:
        await asyncio.gather(*(exporter.unexport() for exporter in list(self._exporters)))
        for mailbox in list(self._mailboxes.values()):
            await mailbox.close()
        self._mailboxes.clear()


def _place(url: URL) -> tuple[str, str]:
    """Which cluster and which service."""
    return names.bootstrap_servers(url), url.path_key
