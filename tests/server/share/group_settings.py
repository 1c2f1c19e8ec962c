"""Setting what a share group has of its own, through the wire."""

from __future__ import annotations

from headrace.testing.wire import WireClient
from headrace.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

GROUP = 32


def configure(bootstrap: str, group: str, settings: dict[str, str]) -> None:
    """These, and no others."""
    configs = [AlterableConfig(name, value) for name, value in settings.items()]
    with WireClient(bootstrap) as client:
        (answer,) = client.call(
            AlterConfigsRequest([AlterConfigsResource(GROUP, group, configs)]), 2
        ).responses
    assert answer.error_code == 0, answer.error_message
