"""Readers and writers of messages, compiled once per class and version from the tables in `schema.py`.

A reader takes any bytes-like object and raises WireError for invalid input: short input, negative or giant lengths, text
that is not UTF-8. A length is checked against the bytes that are present, so a small frame cannot make the broker allocate
much. No array has more than a million elements, no struct more than 10,000 tagged fields, as in Kafka 4.4. Unknown tagged fields are
skipped, as Kafka does.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.wire.schema import Field, Message

Buffer = bytes | bytearray | memoryview
M = TypeVar("M", bound=Message)
Reader = Callable[[Buffer, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]

MOST_ELEMENTS = 1_000_000
MOST_TAGS = 10_000

_readers: dict[tuple[type[Message], int], Reader] = {}
_writers: dict[tuple[type[Message], int], Writer] = {}


class WireError(ValueError):
    """Bytes that are not the message they claim to be."""


def decode(cls: type[M], version: int, data: Buffer, start: int = 0) -> tuple[M, int]:
    """Read one message; returns it with the position after it."""
    try:
        message, end = reader(cls, version)(data, start)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"{cls.__name__} v{version} is cut short or malformed: {error}") from None
    if end > len(data):
        raise WireError(f"{cls.__name__} v{version} is cut short")
    return message, end


def encode(message: Message, version: int, out: bytearray | None = None) -> bytearray:
    """Append the message to `out` (or to a new bytearray) and return it."""
    out = bytearray() if out is None else out
    writer(type(message), version)(out, message)
    return out


# Primitives that cannot be a plain struct code.


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    result = shift = 0
    while shift < 35:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise WireError("a variable-length number has more than five bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def write_count(out: bytearray, count: int, flexible: bool) -> None:
    """The number of array elements, or bytes, that follow."""
    if flexible:
        write_uvarint(out, count + 1)
    else:
        out += _INT32.pack(count)


def _length(data: Buffer, position: int, size: int, nullable: bool) -> int:
    """Checks a length or count just read against the bytes that are left; -1 stands for null."""
    if size < 0:
        if size == -1 and nullable:
            return -1
        raise WireError("a length is negative or null where a value is required")
    if size > len(data) - position:
        raise WireError(f"a length of {size} exceeds the {len(data) - position} bytes that are left")
    return size


def checked_count(data: Buffer, position: int, count: int) -> int:
    """The number of array elements that follow, if it can be true."""
    if count < 0 or count > len(data) - position:
        raise WireError(f"a count of {count} exceeds the {len(data) - position} bytes that are left")
    if count > MOST_ELEMENTS:
        raise WireError(f"an array of {count} elements, {MOST_ELEMENTS} is the limit")
    return count


def read_tag_count(data: Buffer, position: int) -> tuple[int, int]:
    count, position = read_uvarint(data, position)
    if count > MOST_TAGS:
        raise WireError(f"{count} tagged fields, {MOST_TAGS} is the limit")
    return count, position


def skip_tags(data: Buffer, position: int) -> int:
    if data[position] == 0:
        return position + 1
    count, position = read_tag_count(data, position)
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += _length(data, position, size, False)
    return position


_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}


def _within(span: tuple[int, int] | None, version: int) -> bool:
    return span is not None and span[0] <= version <= span[1]


class _Source:
    """Python source under construction, with the objects it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {
            "WireError": WireError,
            "UUID": uuid.UUID,
            "read_uvarint": read_uvarint,
            "write_uvarint": write_uvarint,
            "length": _length,
            "skip_tags": skip_tags,
            "read_tag_count": read_tag_count,
            "checked_count": checked_count,
            "unpack_int16": _INT16.unpack_from,
            "unpack_int32": _INT32.unpack_from,
            "pack_int16": _INT16.pack,
            "pack_int32": _INT32.pack,
        }

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def name(self, hint: str, value: object) -> str:
        name = f"{hint}_{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, name: str) -> Any:
        exec(compile("\n".join(self.lines), f"<{name}>", "exec"), self.names)
        return self.names[name]


def reader(cls: type[Message], version: int) -> Reader:
    found = _readers.get((cls, version))
    if found is None:
        found = _readers[cls, version] = _compile_reader(cls, version)
    return found


def _compile_reader(cls: type[Message], version: int) -> Reader:
    source = _Source()
    flexible = version >= cls.FLEXIBLE
    source.names["new"] = cls
    source.add(0, "def read(b, p):")
    source.add(1, "m = new()")
    present = [f for f in cls.FIELDS if _within(f.versions, version)]
    plain = [f for f in present if f.tag is None or not flexible]
    index = 0
    while index < len(plain):
        run = _fixed_run(plain, index)
        if run:
            layout = struct.Struct(">" + "".join(_FIXED[f.kind] for f in run))
            unpack = source.name("unpack", layout.unpack_from)
            source.add(1, f"{', '.join(f'm.{f.name}' for f in run)}, = {unpack}(b, p)")
            source.add(1, f"p += {layout.size}")
            index += len(run)
        else:
            _read_field(source, 1, plain[index], version, flexible)
            index += 1
    if flexible:
        _read_tags(source, [f for f in present if f.tag is not None], version)
    source.add(1, "return m, p")
    return source.function("read")  # type: ignore[no-any-return]


def _fixed_run(fields: list[Field], start: int) -> list[Field]:
    """The fields from `start` on that one struct can hold."""
    end = start
    while end < len(fields) and fields[end].kind in _FIXED and not fields[end].array:
        end += 1
    return fields[start:end]


def _read_tags(source: _Source, tagged: list[Field], version: int) -> None:
    if not tagged:
        source.add(1, "if b[p] == 0: p += 1")
        source.add(1, "else: p = skip_tags(b, p)")
        return
    source.add(1, "count, p = read_tag_count(b, p)")
    source.add(1, "for _ in range(count):")
    source.add(2, "tag, p = read_uvarint(b, p)")
    source.add(2, "size, p = read_uvarint(b, p)")
    source.add(2, "end = p + length(b, p, size, False)")
    for position, field in enumerate(tagged):
        source.add(2, f"{'if' if position == 0 else 'elif'} tag == {field.tag}:")
        _read_field(source, 3, field, version, True)
        source.add(3, "if p != end: raise WireError('a tagged field does not fill its length')")
    source.add(2, "p = end")


def _read_field(source: _Source, depth: int, field: Field, version: int, flexible: bool) -> None:
    nullable = _within(field.nullable, version)
    target = f"m.{field.name}"
    if not field.array:
        _read_value(source, depth, field, version, flexible, nullable, target)
        return
    _read_length(source, depth, flexible, nullable, "unpack_int32", 4)
    source.add(depth, f"if n < 0: {target} = None")
    source.add(depth, "else:")
    source.add(depth + 1, f"if n > {MOST_ELEMENTS}: checked_count(b, p, n)")
    if field.kind in _FIXED:
        size = struct.calcsize(_FIXED[field.kind])
        unpack = source.name("unpack", struct.unpack_from)
        source.add(depth + 1, f"{target} = list({unpack}('>%d{_FIXED[field.kind]}' % n, b, p))")
        source.add(depth + 1, f"p += n * {size}")
        return
    source.add(depth + 1, f"{target} = items = []")
    source.add(depth + 1, "for _i in range(n):")
    _read_value(source, depth + 2, field, version, flexible, False, "v")
    source.add(depth + 2, "items.append(v)")


def _read_length(
    source: _Source, depth: int, flexible: bool, nullable: bool, unpack: str, width: int
) -> None:
    """Leaves a checked length in `n`, -1 for null."""
    if flexible:
        source.add(depth, "n = b[p] - 1")
        source.add(depth, "if n < 127: p += 1")
        source.add(depth, "else:")
        source.add(depth + 1, "n, p = read_uvarint(b, p)")
        source.add(depth + 1, "n -= 1")
    else:
        source.add(depth, f"n, = {unpack}(b, p)")
        source.add(depth, f"p += {width}")
    source.add(depth, f"if n < 0 or n > len(b) - p: n = length(b, p, n, {nullable})")


def _read_value(
    source: _Source, depth: int, field: Field, version: int, flexible: bool, nullable: bool, target: str
) -> None:
    if field.kind in _FIXED:
        layout = struct.Struct(">" + _FIXED[field.kind])
        source.add(depth, f"{target}, = {source.name('unpack', layout.unpack_from)}(b, p)")
        source.add(depth, f"p += {layout.size}")
    elif field.kind == "uuid":
        source.add(depth, "if len(b) - p < 16: raise WireError('a uuid is cut short')")
        source.add(depth, f"{target} = UUID(bytes=bytes(b[p:p + 16]))")
        source.add(depth, "p += 16")
    elif field.kind == "struct":
        assert field.struct is not None
        inner = source.name("read_struct", reader(field.struct, version))
        if nullable:
            source.add(depth, "p += 1")
            # An ordinary field encodes null as -1; a tagged one as 0, as Kafka's generated code does.
            null = "b[p - 1] > 127" if field.tag is None else "b[p - 1] == 0"
            source.add(depth, f"if {null}: {target} = None")
            source.add(depth, f"else: {target}, p = {inner}(b, p)")
        else:
            source.add(depth, f"{target}, p = {inner}(b, p)")
    else:
        narrow = field.kind == "string"
        unpack, width = ("unpack_int16", 2) if narrow else ("unpack_int32", 4)
        _read_length(source, depth, flexible, nullable, unpack, width)
        value = "str(b[p:p + n], 'utf-8')" if narrow else "bytes(b[p:p + n])"
        if nullable:
            source.add(depth, f"if n < 0: {target} = None")
            source.add(depth, "else:")
            source.add(depth + 1, f"{target} = {value}")
            source.add(depth + 1, "p += n")
        else:
            source.add(depth, f"{target} = {value}")
            source.add(depth, "p += n")


def writer(cls: type[Message], version: int) -> Writer:
    found = _writers.get((cls, version))
    if found is None:
        found = _writers[cls, version] = _compile_writer(cls, version)
    return found


def _compile_writer(cls: type[Message], version: int) -> Writer:
    source = _Source()
    flexible = version >= cls.FLEXIBLE
    source.add(0, "def write(o, m):")
    present = [f for f in cls.FIELDS if _within(f.versions, version)]
    plain = [f for f in present if f.tag is None or not flexible]
    index = 0
    while index < len(plain):
        run = _fixed_run(plain, index)
        if run:
            pack = source.name("pack", struct.Struct(">" + "".join(_FIXED[f.kind] for f in run)).pack)
            source.add(1, f"o += {pack}({', '.join(f'm.{f.name}' for f in run)})")
            index += len(run)
        else:
            _write_field(source, 1, plain[index], version, flexible, "o")
            index += 1
    if flexible:
        _write_tags(source, [f for f in present if f.tag is not None], version)
    source.add(1, "return None")
    return source.function("write")  # type: ignore[no-any-return]


def _write_tags(source: _Source, tagged: list[Field], version: int) -> None:
    if not tagged:
        source.add(1, "o.append(0)")
        return
    source.add(1, "tags = []")
    for field in sorted(tagged, key=lambda f: f.tag or 0):
        if field.array:
            condition = f"m.{field.name}"
        else:
            default = field.default
            if field.struct is not None and field.nullable is None:
                default = field.struct()
            condition = f"m.{field.name} != {source.name('default', default)}"
        source.add(1, f"if {condition}:")
        source.add(2, "t = bytearray()")
        _write_field(source, 2, field, version, True, "t")
        source.add(2, f"tags.append(({field.tag}, t))")
    source.add(1, "write_uvarint(o, len(tags))")
    source.add(1, "for tag, t in tags:")
    source.add(2, "write_uvarint(o, tag)")
    source.add(2, "write_uvarint(o, len(t))")
    source.add(2, "o += t")


def _write_field(source: _Source, depth: int, field: Field, version: int, flexible: bool, out: str) -> None:
    nullable = _within(field.nullable, version)
    if not field.array:
        _write_value(source, depth, field, version, flexible, nullable, f"m.{field.name}", out)
        return
    source.add(depth, f"items = m.{field.name}")
    source.add(depth, "if items is None:")
    _write_null(source, depth + 1, flexible, nullable, "pack_int32", out)
    source.add(depth, "else:")
    _write_length(source, depth + 1, flexible, "pack_int32", "len(items)", out)
    if field.kind in _FIXED:
        pack = source.name("pack", struct.pack)
        source.add(depth + 1, f"{out} += {pack}('>%d{_FIXED[field.kind]}' % len(items), *items)")
        return
    source.add(depth + 1, "for item in items:")
    _write_value(source, depth + 2, field, version, flexible, False, "item", out)


def _write_length(source: _Source, depth: int, flexible: bool, pack: str, length: str, out: str) -> None:
    if flexible:
        source.add(depth, f"n = {length} + 1")
        source.add(depth, f"if n < 128: {out}.append(n)")
        source.add(depth, f"else: write_uvarint({out}, n)")
    else:
        source.add(depth, f"{out} += {pack}({length})")


def _write_null(source: _Source, depth: int, flexible: bool, nullable: bool, pack: str, out: str) -> None:
    if flexible:
        source.add(depth, f"{out}.append({0 if nullable else 1})")
    else:
        source.add(depth, f"{out} += {pack}({-1 if nullable else 0})")


def _write_value(
    source: _Source,
    depth: int,
    field: Field,
    version: int,
    flexible: bool,
    nullable: bool,
    value: str,
    out: str,
) -> None:
    if field.kind in _FIXED:
        pack = source.name("pack", struct.Struct(">" + _FIXED[field.kind]).pack)
        source.add(depth, f"{out} += {pack}({value})")
    elif field.kind == "uuid":
        source.add(depth, f"{out} += {value}.bytes")
    elif field.kind == "struct":
        assert field.struct is not None
        inner = source.name("write_struct", writer(field.struct, version))
        if nullable:
            null = 255 if field.tag is None else 0
            source.add(depth, f"if {value} is None: {out}.append({null})")
            source.add(depth, "else:")
            source.add(depth + 1, f"{out}.append(1)")
            source.add(depth + 1, f"{inner}({out}, {value})")
        else:
            source.add(depth, f"{inner}({out}, {value})")
    else:
        narrow = field.kind == "string"
        pack = "pack_int16" if narrow else "pack_int32"
        source.add(depth, f"d = {value}")
        source.add(depth, "if d is None:")
        _write_null(source, depth + 1, flexible, nullable, pack, out)
        source.add(depth, "else:")
        if narrow:
            source.add(depth + 1, "d = d.encode()")
        _write_length(source, depth + 1, flexible, pack, "len(d)", out)
        source.add(depth + 1, f"{out} += d")
