"""kafka-cluster.sh: the cluster's id, its endpoints, and forgetting a broker for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.failure import Exit, Failure
from headrace.cli.kafka.arguments import KafkaParser

if TYPE_CHECKING:
    from headrace.cli.cluster.connection import Cluster

_ACTIONS = ("cluster-id", "unregister", "list-endpoints", "api-versions")


def run(arguments: list[str]) -> int:
    parser = KafkaParser(
        "cluster", "The Kafka cluster tool: cluster-id, unregister --id N, list-endpoints, api-versions."
    )
    parser.add_argument("action", choices=_ACTIONS, help="What to do.")
    parser.bootstrap()
    parser.command_config("--config", "-c")
    parser.flag("--id", "-i", type=int, help="With unregister: the broker to forget.")
    parser.switch("--include-fenced-brokers", help="With list-endpoints: those that are down too.")
    options = parser.parse(arguments)
    if options.action == "unregister" and options.id is None:
        parser.error("argument --id/-i is required")
    try:
        from headrace.cli.cluster.connection import connect

        cluster = connect(options.bootstrap_server, options.command_config)
        if options.action == "unregister":
            _unregister(cluster, options.id)
        elif options.action == "cluster-id":
            _cluster_id(cluster)
        elif options.action == "api-versions":
            from headrace.cli.kafka import broker_api_versions

            broker_api_versions.show(cluster)
        else:
            _endpoints(cluster, options.include_fenced_brokers)
    except Failure as failure:
        print(failure.sentence, file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def _cluster_id(cluster: Cluster) -> None:
    from headrace.client.administration import brokers

    print(f"Cluster ID: {cluster.call(brokers.describe).cluster_id}")


def _endpoints(cluster: Cluster, fenced_too: bool) -> None:
    from headrace.client.administration import brokers

    found = [broker for broker in cluster.call(brokers.describe).brokers if broker.live or fenced_too]
    width = max([10, *(len(broker.host) for broker in found)])
    rack = max([10, *(len(broker.rack or "") for broker in found)])
    print(f"{'ID':<10} {'HOST':<{width}} {'PORT':<10} {'RACK':<{rack}} {'STATE':<10} {'ENDPOINT_TYPE':<15}")
    for broker in found:
        state = "unfenced" if broker.live else "fenced"
        print(
            f"{broker.id:<10} {broker.host:<{width}} {broker.port:<10} {broker.rack or 'null':<{rack}} "
            f"{state:<10} {'broker':<15}"
        )


def _unregister(cluster: Cluster, broker_id: int) -> None:
    from headrace.client.administration import brokers

    cluster.call(brokers.unregister, broker_id)
    print(f"Broker {broker_id} is no longer registered.")
