"""The records that every client writes and every client must read back: each odd case of keys, values and headers."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass

PARTITIONS = 3
BASE_TIMESTAMP = 1_700_000_000_000

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record as written; its offset is its place in its partition."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    def to_json(self) -> dict[str, object]:
        return {
            "partition": self.partition,
            "timestamp": self.timestamp,
            "key": _text(self.key),
            "value": _text(self.value),
            "headers": [[name, _text(value)] for name, value in self.headers],
        }


def from_json(json: dict[str, object]) -> tuple[str, Record]:
    """The topic and the record of a line that a reader printed."""
    headers = json["headers"]
    assert isinstance(headers, list)
    pairs = tuple((str(name), _bytes(value)) for name, value in headers)
    record = Record(
        partition=int(str(json["partition"])),
        offset=int(str(json["offset"])),
        timestamp=int(str(json["timestamp"])),
        key=_bytes(json["key"]),
        value=_bytes(json["value"]),
        headers=pairs,
    )
    return str(json["topic"]), record


def dataset(count: int = 240, *, null_headers: bool = True) -> list[Record]:
    """Partitions in turn; null, empty, binary, large and accented keys and values; headers none to several."""
    null = None if null_headers else b"not null"
    keys = (None, b"", b"key", "clé à ключ".encode(), bytes(range(256)))
    values = (b"value", b"", None, "valeur é 值".encode(), bytes(range(255, -1, -1)), b"x" * 5000)
    headers: tuple[Headers, ...] = (
        (),
        (("one", b"1"),),
        (("trace", b"abc"), ("empty", b""), ("null", null)),
        (("twice", b"first"), ("twice", b"second")),
    )
    records = []
    for number in range(count):
        value = values[number % len(values)]
        if number == count // 2:
            value = b"large record " * 50_000
        # Every seventh record is five seconds early, so that timestamps are not in the order of offsets.
        timestamp = BASE_TIMESTAMP + number * 1000 - (5000 if number % 7 == 3 else 0)
        records.append(
            Record(
                partition=number % PARTITIONS,
                offset=number // PARTITIONS,
                timestamp=timestamp,
                key=keys[number % len(keys)],
                value=value,
                headers=headers[number % len(headers)],
            )
        )
    return records


def in_order(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: object) -> bytes | None:
    return None if text is None else base64.b64decode(str(text))
