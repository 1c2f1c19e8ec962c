"""RabbitMQ streams: one node with the stream plugin, and a name server (epmd) of its own that ends with
it.
"""

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.processes import Watched, free_port
from bench.provision import RABBITMQ, need_load_program, need_packages, run
from bench.systems.base import ReadyCheck, Running, System, until_ready
from bench.systems.other import RunningOther, output_beside


class _Listens(ReadyCheck):
    """The stream plugin opens its port last, when the node serves."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self) -> bool:
        time.sleep(0.02)
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
        except OSError:
            return False
        return True


class RabbitMQ(System):
    name: ClassVar[str] = "rabbitmq"
    title: ClassVar[str] = "RabbitMQ streams"

    def prepare(self) -> None:
        need_packages([RABBITMQ])
        need_load_program("rabbitmq-load")

    def version(self) -> str:
        installed = run(["dpkg-query", "-W", "-f", "${Version}", RABBITMQ.package])
        return installed.split("-")[0]

    def start(self, data: Path, settings: Mapping[str, str] | None = None) -> Running:
        log = output_beside(data)
        port, amqp, names, distribution = free_port(), free_port(), free_port(), free_port()
        config = data / "rabbitmq.conf"
        config.write_text(
            f"listeners.tcp.1 = 127.0.0.1:{amqp}\n"
            f"stream.listeners.tcp.1 = 127.0.0.1:{port}\n"
            f"stream.advertised_host = 127.0.0.1\nstream.advertised_port = {port}\n"
        )
        plugins = data / "enabled_plugins"
        plugins.write_text("[rabbitmq_stream].\n")
        env = {
            "HOME": str(data),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
            "RABBITMQ_LOG_BASE": str(data / "log"),
            "RABBITMQ_LOGS": "-",
        }
        name_server = Watched(["epmd", "-port", str(names), "-address", "127.0.0.1"], log, env=env)
        node = Watched([RABBITMQ.what], log, env=env)
        try:
            ready = until_ready(node, _Listens(port))
        except BaseException:
            name_server.kill()
            raise
        return RunningOther(port, [name_server, node], "rabbitmq-load", ready)
