"""An HTTP endpoint as a source: a process of its own beside Spark, because a sender waits for each answer."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn

from headrace.client.pace import Pace
from headrace.connectors.base import Running, Service
from headrace.connectors.errors import ConnectorError, one_line
from headrace.connectors.http.gateway import Gateway, GatewayLimits
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.topic import TopicOut, connection
from headrace.link.addresses import split_address


@dataclass(frozen=True)
class EndpointSettings:
    listen: str = setting("The address to listen on, as host:port.", default="127.0.0.1:8080")
    topics: tuple[str, ...] = setting(
        "Further topics, taken at POST /topics/<name>.", default=(), example=["payments"]
    )
    key_header: str = setting("The request header that gives a record's key.", default="Headrace-Key")
    copy_headers: tuple[str, ...] = setting(
        "Request headers that become the record's headers.", default=(), example=["traceparent"]
    )
    token: str | None = setting(
        "A bearer token that requests must show; ${NAME} is the environment's.",
        default=None,
        example="${GATE_TOKEN}",
    )
    max_body: int = setting("The most bytes in one request.", default=1 << 20, minimum=1)
    max_waiting: int = setting(
        "The most records that wait for the cluster; beyond that requests get 429.", default=20_000, minimum=1
    )
    max_waiting_bytes: int = setting("The same in bytes.", default=64 << 20, minimum=1)
    retry_after: int = setting("The seconds that 429 and 503 ask the sender to wait.", default=1, minimum=1)
    timeout: Seconds = setting(
        "How long the cluster may take to acknowledge; then 503.", default=10.0, minimum=0.1
    )
    certificate: str | None = setting(
        "A PEM file with the certificate chain, for HTTPS.", default=None, example="/etc/ssl/gate.pem"
    )
    private_key: str | None = setting(
        "A PEM file with its private key.", default=None, example="/etc/ssl/gate.key"
    )

    def problems(self) -> Iterator[str]:
        try:
            host, _ = split_address(self.listen)
        except ValueError:
            host = ""
        if not host:
            yield f"listen is {self.listen!r}: it must be host:port, such as 127.0.0.1:8080"
        if (self.certificate is None) != (self.private_key is None):
            yield "certificate and private_key belong together: give both or none"


class HttpEndpoint(Service):
    delivery = "at least once"
    summary = "An HTTP endpoint that takes records in and answers when every in-sync replica has them."
    Settings = EndpointSettings
    settings: EndpointSettings

    def check(self) -> None:
        certificate, key = self.settings.certificate, self.settings.private_key
        if certificate is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
            except OSError as error:
                raise ConnectorError(
                    f"source.certificate and source.private_key cannot be used ({one_line(error)}): name a PEM file with the "
                    "chain, and one with its key"
                ) from None

    def start(self, topic: TopicOut) -> Running:
        return Listening(self.name, self.settings, self.gateway(topic))

    def gateway(self, topic: TopicOut) -> Gateway:
        """The ASGI application, for those who bring their own server."""
        settings = self.settings
        return Gateway(
            connection(topic),
            [topic.name, *settings.topics],
            key=topic.key,
            key_header=settings.key_header,
            copy_headers=settings.copy_headers,
            token=settings.token,
            limits=GatewayLimits(
                settings.max_waiting, settings.max_waiting_bytes, settings.max_body, settings.retry_after
            ),
            timeout=settings.timeout,
        )


class Listening(Running):
    """uvicorn in a thread; the main thread stays with the program."""

    def __init__(self, name: str, settings: EndpointSettings, gateway: Gateway) -> None:
        host, port = split_address(settings.listen)
        self._name = name
        self._gateway = gateway
        self._failure: ConnectorError | None = None
        self._up = threading.Event()
        config = uvicorn.Config(
            gateway,
            host=host.strip("[]"),
            port=port,
            http="httptools",
            loop="uvloop",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.private_key,
        )
        try:
            self._socket = config.bind_socket()
        except SystemExit:
            raise ConnectorError(
                f"source.listen is {settings.listen}, but that address is taken or not ours"
            ) from None
        self.address = "{}:{}".format(*self._socket.getsockname()[:2])
        self._server = _Server(config, self._up)
        self._thread = threading.Thread(target=self._serve, name=f"headrace-{name}", daemon=True)
        self._thread.start()
        self._up.wait()
        self._pace = Pace(time.time(), 1)

    def is_active(self) -> bool:
        return self._thread.is_alive()

    def failure(self) -> Exception | None:
        return self._failure

    def facts(self) -> dict[str, object]:
        counts = self._gateway.counts
        self._pace.take(time.time(), [counts.accepted])
        return {
            "rows": counts.accepted,
            "rows_per_second": round(self._pace.rates[0], 1),
            "listening": self.address,
            "waiting": counts.records,
            "refused": counts.refused,
            "failed": counts.failed,
        }

    def stop(self) -> None:
        """Take nothing more, finish what is under way, then end."""
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
            why = self._gateway.failure
        except (SystemExit, Exception) as error:
            why = self._gateway.failure or f"{type(error).__name__}: {one_line(error)}"
        if why is not None:
            self._failure = ConnectorError(f"{self._name} could not start: {why}")
        self._socket.close()
        self._up.set()


class _Server(uvicorn.Server):
    """Says when it is up."""

    def __init__(self, config: uvicorn.Config, up: threading.Event) -> None:
        super().__init__(config)
        self._up = up

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets=sockets)  # type: ignore[arg-type]
        self._up.set()
