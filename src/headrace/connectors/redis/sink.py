"""Redis as a sink: commands and the offset they reach run in one script, which Redis runs alone.

The offset is kept in the hash ``headrace:connect:<name>``, so a chunk that comes again, whole or in part, adds
nothing. It is as durable as the server's persistence makes it: both are lost together or kept together.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import ConnectorError, Rejected
from headrace.connectors.redis.settings import connect, reachable
from headrace.connectors.settings import setting
from headrace.connectors.topic import METADATA, to_json

_COMMANDS = 500  # a script: Redis serves no other client meanwhile

# A command that fails stops the script, but not what came before it: so the offset moves with every command.
_SCRIPT = """
local at = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
local i = 3
while i <= #ARGV do
  local offset, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  if offset >= at then
    local done = redis.pcall(unpack(ARGV, i + 2, i + 1 + count))
    if type(done) == 'table' and done.err then
      redis.call('HSET', KEYS[1], ARGV[1], ARGV[i])
      return {offset, done.err}
    end
  end
  i = i + 2 + count
end
if tonumber(ARGV[2]) > at then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return {}
"""


@dataclass(frozen=True)
class RedisSinkSettings:
    url: str = setting("The server.", example="redis://:${PASSWORD}@host:6379/0")
    structure: Literal["string", "hash", "list", "stream"] = setting(
        "What a record becomes: the value of a key, the fields of a hash, or an element of a list or a stream.",
        default="string",
    )
    key: str = setting("The key; {field} is a field of the record and {_key} its key.", example="order:{id}")
    ttl: int | None = setting(
        "string and hash: seconds until a key vanishes.", default=None, minimum=1, example=86_400
    )
    max_length: int | None = setting(
        "list and stream: about how many elements to keep.", default=None, minimum=1, example=10_000
    )

    def problems(self) -> Iterator[str]:
        if self.ttl is not None and self.structure not in ("string", "hash"):
            yield f"ttl is given, but a {self.structure} keeps its elements: use max_length"
        try:
            parts = list(string.Formatter().parse(self.key))
        except ValueError as error:
            yield f"key is {self.key!r}, which cannot be read ({error}): write it as order:{{id}}"
        else:
            if any(
                name == "" or spec or conversion for _, name, spec, conversion in parts if name is not None
            ):
                yield f"key is {self.key!r}: in brackets stands a field's name and nothing else, as in order:{{id}}"
        if self.max_length is not None and self.structure not in ("list", "stream"):
            yield f"max_length is given, but a {self.structure} has no elements: use ttl"


class RedisSink(Sink):
    delivery = "exactly once"
    summary = "Redis: strings, hashes, lists or streams, with the offset in the same script."
    Settings = RedisSinkSettings
    settings: RedisSinkSettings

    def check(self) -> None:
        with reachable(self.settings.url):
            connect(self.settings.url, "sink").ping()

    def identity(self) -> dict[str, object]:
        return {"key": self.settings.key, "structure": self.settings.structure}

    def check_schema(self, schema: Any) -> None:
        known = {*schema.names, *METADATA}
        for _, name, _, _ in string.Formatter().parse(self.settings.key):
            if name is not None and name not in known:
                raise ConnectorError(
                    f"sink.key is {self.settings.key!r}, but there is no field {name}: there are {', '.join(schema.names)}"
                )
        if self.settings.structure == "hash" and schema.names == ["value"]:
            raise ConnectorError(
                'sink.structure is "hash", which needs fields: set topic.value to "json" with a schema'
            )

    def open(self) -> None:
        self._client = connect(self.settings.url, "sink")
        self._script = self._client.register_script(_SCRIPT)

    def close(self) -> None:
        self._client.close()

    def write(self, chunk: Chunk) -> None:
        field = f"{chunk.origin}-{chunk.partition}"
        arguments: list[bytes | str | int] = []
        commands = 0
        for row in chunk.rows.to_pylist():
            for command in self._commands(row):
                arguments += [row["_offset"], len(command), *command]
                commands += 1
            if commands >= _COMMANDS:
                self._run(field, row["_offset"] + 1, arguments)
                arguments, commands = [], 0
        self._run(field, chunk.next, arguments)

    def _run(self, field: str, next_offset: int, arguments: list[bytes | str | int]) -> None:
        with reachable(self.settings.url):
            failed = self._script(
                keys=[f"headrace:connect:{self.name}"], args=[field, next_offset, *arguments]
            )
        if failed:
            raise Rejected({int(failed[0]): f"Redis refused it: {failed[1].decode()}"})

    def _commands(self, row: dict[str, Any]) -> Iterator[list[bytes | str | int]]:
        """One command a record, or two of which the second may be repeated."""
        settings, key = self.settings, self._key(row)
        if row["_value"] is None:
            if settings.structure in ("string", "hash"):
                yield ["DEL", key]
            return
        if settings.structure == "string":
            expiry: list[str | int] = [] if settings.ttl is None else ["EX", settings.ttl]
            yield ["SET", key, row["_value"], *expiry]
        elif settings.structure == "hash":
            yield ["HSET", key, *self._fields(row)]
            if settings.ttl is not None:
                yield ["EXPIRE", key, settings.ttl]
        elif settings.structure == "list":
            yield ["RPUSH", key, row["_value"]]
            if settings.max_length is not None:
                yield ["LTRIM", key, -settings.max_length, -1]
        else:
            limit: list[str | int] = (
                [] if settings.max_length is None else ["MAXLEN", "~", settings.max_length]
            )
            yield ["XADD", key, *limit, "*", *self._fields(row)]

    def _fields(self, row: dict[str, Any]) -> list[bytes | str]:
        fields: list[bytes | str] = []
        for name, value in row.items():
            if name not in METADATA and value is not None:
                fields += [name, value if isinstance(value, bytes | str) else to_json(value)]
        if not fields:
            raise Rejected({row["_offset"]: "it has no fields"})
        return fields

    def _key(self, row: dict[str, Any]) -> str:
        key = row["_key"]
        values = {**row, "_key": None if key is None else key.decode("utf-8", "replace")}
        names = [name for _, name, _, _ in string.Formatter().parse(self.settings.key) if name]
        missing = [name for name in names if values[name] is None]
        # A record without a value has no fields; its key stands in for the one field that the key is made of.
        if row["_value"] is None and len(missing) == 1 and values["_key"] is not None:
            values[missing[0]] = values["_key"]
        elif missing:
            raise Rejected({row["_offset"]: f"it has no {missing[0]}, which sink.key is made of"})
        return self.settings.key.format_map(values)
