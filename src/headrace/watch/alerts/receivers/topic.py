"""A topic: each notice as a JSON record, keyed by its alert."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.client.config import connection_settings
from headrace.client.errors import ClientError
from headrace.client.producer import Producer
from headrace.watch.alerts.declared import TopicReceiver
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import NotDelivered


class Topic:
    def __init__(self, settings: TopicReceiver, config: Mapping[str, object]) -> None:
        self._topic = settings.topic
        limit = int(settings.timeout * 1000)
        self._producer: Producer[bytes, bytes] = Producer(
            {**connection_settings(config), "delivery.timeout.ms": limit, "max.block.ms": limit}
        )

    def deliver(self, notice: Notice) -> None:
        document = json.dumps(notice.as_document(), ensure_ascii=False).encode()
        try:
            self._producer.send_and_wait(self._topic, document, key=notice.key.encode())
        except ClientError as error:
            # Its own retries are over, and the record may be written nevertheless.
            raise NotDelivered(str(error), may_have_arrived=True) from None

    def close(self) -> None:
        self._producer.abandon()
