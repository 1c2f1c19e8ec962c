"""Which resources have settings of their own, for kinds that exist only through their settings."""

from __future__ import annotations

from headrace.cli.admin.configs import KINDS
from headrace.cli.cluster.connection import Cluster
from headrace.cli.raw.refused import RequestRefused, check
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
)


def names_with_settings(cluster: Cluster, kind: str) -> list[str]:
    try:
        with cluster.broker() as broker:
            answer = broker.ask(ListConfigResourcesRequest([KINDS[kind]]))
    except RequestRefused as refused:
        if refused.error == ErrorCode.UNSUPPORTED_VERSION:  # a broker too old to have such resources
            return []
        raise
    check(answer.error_code)
    return [found.resource_name for found in answer.config_resources if found.resource_type == KINDS[kind]]
