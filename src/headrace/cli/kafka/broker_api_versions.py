"""kafka-broker-api-versions.sh"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster
    from headrace.wire.schema import Request


def run(arguments: list[str]) -> int:
    parser = KafkaParser("broker-api-versions", "Retrieve the API versions that brokers offer.")
    parser.bootstrap()
    parser.command_config()
    options = parser.parse(arguments)
    try:
        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        show(cluster)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def show(cluster: Cluster) -> None:
    from headrace.client.administration.session import Session

    for node in cluster.nodes:
        rack = node.rack or "null"
        versions = cluster.call(Session.offers, node.id).versions
        lines = ",\n".join(f"\t{_line(key, span)}" for key, span in sorted(versions.items()))
        print(f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: false) -> (\n{lines}\n)")


def _line(key: int, offered: tuple[int, int]) -> str:
    """Produce(0): 0 to 13 [usable: 13]"""
    request = _requests().get(key)
    low, high = offered
    span = f"{low}" if low == high else f"{low} to {high}"
    if request is None:
        return f"UNKNOWN({key}): {span}"
    name = request.__name__.removesuffix("Request")
    usable = min(high, request.VERSIONS[1])
    if usable < max(low, request.VERSIONS[0]):
        return f"{name}({key}): {span} [unusable: node too {'old' if high < request.VERSIONS[0] else 'new'}]"
    return f"{name}({key}): {span} [usable: {usable}]"


@cache
def _requests() -> dict[int, type[Request]]:
    """The requests Headrace has a codec for, by API key."""
    import pkgutil
    from importlib import import_module

    from headrace.wire import messages
    from headrace.wire.schema import Request

    for module in pkgutil.iter_modules(messages.__path__):
        import_module(f"{messages.__name__}.{module.name}")
    return {request.API_KEY: request for request in Request.__subclasses__()}
