"""From what a file declares to something that delivers."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.watch.alerts.declared import (
    CommandReceiver,
    LogReceiver,
    Receiver,
    TopicReceiver,
    WebhookReceiver,
)
from headrace.watch.alerts.receivers.base import Delivers
from headrace.watch.alerts.receivers.command import Command
from headrace.watch.alerts.receivers.log import Log
from headrace.watch.alerts.receivers.topic import Topic
from headrace.watch.alerts.receivers.webhook import Webhook


def open_receiver(declared: Receiver, config: Mapping[str, object]) -> Delivers:
    match declared:
        case LogReceiver():
            return Log(declared)
        case WebhookReceiver():
            return Webhook(declared)
        case CommandReceiver():
            return Command(declared)
        case TopicReceiver():
            return Topic(declared, config)
