"""Records to text, as Kafka's default message formatter prints them; `headrace consume` adds topics and readable times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from headrace.cli.view.records.deserializers import Deserializer, by_class_name
from headrace.cli.view.records.record import headers_of

_SWITCHES = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")


@dataclass(slots=True)
class TextFormat:
    """The switched-on parts in Kafka's order, the key separator between them, the line separator at the end."""

    topic: bool = False
    timestamp: bool = False
    readable_times: bool = False
    partition: bool = False
    offset: bool = False
    delivery: bool = False
    epoch: bool = False
    headers: bool = False
    key: bool = False
    value: bool = True
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null_literal: bytes = b"null"
    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    headers_deserializer: Deserializer | None = None

    @staticmethod
    def from_properties(properties: Mapping[str, str]) -> TextFormat:
        """From the names Kafka gives these (print.key, key.separator, key.deserializer, …)."""
        made = TextFormat()
        for part in _SWITCHES:
            if f"print.{part}" in properties:
                setattr(made, part, properties[f"print.{part}"].strip().lower() == "true")
        for name in ("key.separator", "line.separator", "headers.separator", "null.literal"):
            if name in properties:
                setattr(made, name.replace(".", "_"), properties[name].encode())
        for part in ("key", "value", "headers"):
            if f"{part}.deserializer" in properties:
                setattr(made, f"{part}_deserializer", by_class_name(properties[f"{part}.deserializer"]))
        return made

    def line(self, message: Message) -> bytes:
        parts: list[bytes] = []
        if self.topic:
            parts.append(b"Topic:" + (message.topic() or "").encode())
        if self.timestamp:
            parts.append(_timestamp(message, self.readable_times))
        if self.partition:
            parts.append(b"Partition:%d" % (message.partition() or 0))
        if self.offset:
            parts.append(b"Offset:%d" % (message.offset() or 0))
        if self.delivery:
            parts.append(b"Delivery:NOT_PRESENT")  # only share groups count deliveries
        if self.epoch:
            epoch = message.leader_epoch()
            parts.append(b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch)
        if self.headers:
            parts.append(self._headers(message))
        if self.key:
            parts.append(self._show(message.key(), self.key_deserializer))
        if self.value:
            parts.append(self._show(message.value(), self.value_deserializer))
        return self.key_separator.join(parts) + self.line_separator if parts else b""

    def _headers(self, message: Message) -> bytes:
        headers = headers_of(message)
        if not headers:
            return b"NO_HEADERS"
        shown = (
            name.encode() + b":" + self._show(value, self.headers_deserializer) for name, value in headers
        )
        return self.headers_separator.join(shown)

    def _show(self, data: bytes | None, deserializer: Deserializer | None) -> bytes:
        if data is None:
            return self.null_literal
        return data if deserializer is None else deserializer(data).encode()


def _timestamp(message: Message, readable: bool) -> bytes:
    kind, milliseconds = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return b"NO_TIMESTAMP"
    name = b"CreateTime" if kind == TIMESTAMP_CREATE_TIME else b"LogAppendTime"
    return b"%s:%s" % (name, _readable(milliseconds) if readable else b"%d" % milliseconds)


def _readable(milliseconds: int) -> bytes:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):  # a producer may send any number
        return b"%d" % milliseconds
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
