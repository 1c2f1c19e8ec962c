"""Whatever bytes arrive, the decoder answers with a value or a Hessian2Error, soon and in little memory."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import struct
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from headrace.services.hessian2 import (
    Decoder,
    Encoder,
    Hessian2Error,
    JavaClasses,
    JavaObject,
    Long,
    brief,
    decode,
    encode,
    java_class,
)

CLASSES = JavaClasses()


@java_class("headrace.interop.Colour", classes=CLASSES)
class Colour(Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


@java_class("headrace.interop.Address", classes=CLASSES)
class Address(BaseModel):
    street: str | None = None
    house_number: int = 0


@java_class("headrace.interop.Person", classes=CLASSES)
@dataclass(frozen=True)
class Person:
    name: str
    friend: Person | None
    long_list: tuple[Long, ...]
    colour: Colour
    scores: dict[str, int]


@java_class("headrace.interop.OrderException", classes=CLASSES)
class OrderError(Exception):
    error_code: int


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=[]))
    | st.binary()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC)).map(
        lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)
    )
    | st.sampled_from(Colour)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=6)
        | st.builds(
            JavaObject,
            st.text(min_size=1, max_size=8),
            st.dictionaries(st.text(max_size=5), inner, max_size=4),
        )
    ),
    max_leaves=30,
)


def joined(value: Any) -> Any:
    """Java knows no lone halves of a pair next to each other: they are that character."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if isinstance(value, list):
        return [joined(item) for item in value]
    if isinstance(value, dict):
        return {joined(key): joined(item) for key, item in value.items()}
    if isinstance(value, JavaObject):
        return JavaObject(joined(value.class_name), joined(value.fields))
    return value


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_every_value_survives(value: Any) -> None:
    assert decode(encode(value, classes=CLASSES), classes=CLASSES) == joined(value)


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=200))
@example(b"")
@example(b"C")
@example(b"Q\x90")
@example(b"\x60")
@example(b"O\x90")
@example(b"M\x90Z")
@example(b"V\x01xI\x7f\xff\xff\xff")
@example(b"\x1f\xc3")
@example(b"S\xff\xff" + b"\xe6\xbc\xa2" * 10)
@example(b"R\x00\x01a\x90")
@example(b"A\x00\x01a\x90")
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    read_all(data)


def read_all(data: bytes) -> None:
    decoder = Decoder(data, CLASSES)
    with contextlib.suppress(Hessian2Error):
        while decoder.remaining:
            decoder.decode()


def golden() -> list[bytes]:
    texts = json.loads(Path(__file__).with_name("hessian2_golden.json").read_text()).values()
    return [
        zlib.decompress(base64.b64decode(text[5:])) if text.startswith("zlib:") else bytes.fromhex(text)
        for text in texts
    ]


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bodies_of_java_give_a_value_or_the_one_error(seed: int) -> None:
    generator = random.Random(seed)
    bodies = [body for body in golden() if 1 < len(body) < 2000]
    for body in bodies:
        damaged = bytearray(body)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(damaged))
            match generator.randrange(4):
                case 0:
                    damaged[at] = generator.randrange(256)
                case 1:
                    del damaged[at:]
                    damaged += generator.choice(bodies)[: generator.randrange(50)]
                case 2:
                    damaged[at:at] = generator.choice(bodies)[: generator.randrange(50)]
                case 3:
                    damaged[at] ^= 1 << generator.randrange(8)
            if not damaged:
                break
        read_all(bytes(damaged))


def big_integer(value: int) -> bytes:
    """The fields of one BigInteger after its definition."""
    words = value.to_bytes((value.bit_length() + 31) // 32 * 4, "big")
    numbers = struct.unpack(f">{len(words) // 4}i", words)
    return (
        b"\x60"
        + bytes([0x78 + len(numbers)])
        + b"".join(struct.pack(">Bi", 0x49, number) for number in numbers)
        + b"\x91"
    )


DEFINITION = b"C\x14java.math.BigInteger\x92\x03mag\x06signum"
SAME_HASH = b"".join(big_integer((2**61 - 1) * n) + b"N" for n in range(1, 20_000))


def lists_of_lists() -> bytes:
    """Each holds the one before it twice: a small body that nobody could ever print or compare."""
    value: list[object] = [1]
    for _ in range(100):
        value = [value, value]
    return encode(value)


def map_with_two_such_keys() -> bytes:
    encoder = Encoder()
    encoder.out += b"H"
    encoder.count()
    for _ in range(2):
        key = JavaObject("com.acme.Pair")
        for _ in range(100):
            key = JavaObject("com.acme.Pair", {"left": key, "right": key})
        encoder.encode_many((key, None))
    return encoder.getvalue() + b"Z"


def lists_that_all_hold_each_other() -> bytes:
    """Nothing is repeated, but to print them naively is to walk every path there is."""
    lists: list[list[object]] = [[] for _ in range(16)]
    for each in lists:
        each += lists
    return encode(lists[0])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x79" * 1_000_000, "nested deeper than 256 levels"),
        (b"H\x01a" * 300_000, "nested deeper than 256 levels"),
        (b"C\x01A\x91\x01f" + b"\x60" * 1_000_000, "nested deeper than 256 levels"),
        (b"C\x01A\x90" * 200_000 + b"Z", "begins no value"),
        (b"X" + struct.pack(">Bi", 0x49, 1_500_000) + b"\x78" * 1_500_000, "more than 1000000 objects"),
        (b"XI\x7f\xff\xff\xff" + b"\x90" * 10, "length of 2147483647"),
        (b"X\x8f", "length of -1"),
        (b"C\x01AI\x7f\xff\xff\xff", "class definition announces a length"),
        (b"S\xff\xffabc", "runs past the end"),
        (b"B\xff\xffabc", "runs past the end"),
        (b"H" + DEFINITION + SAME_HASH + b"Z", "share a hash value"),
        (b"\x72\x11java.util.HashSet" + b"\x90", "ends in the middle"),
        (b"\x04\xf0\x9f\x98\x80abc", "four-byte character"),
        (b"\x01\xff", "no UTF-8"),
        (b"J\x7f" + b"\xff" * 7, "outside the years 1 to 9999"),
        (b"Q\x90", "Reference 0 does not exist"),
        (b"\x6f", "Class definition 15 does not exist"),
        (b"M\x93Z", "Type reference 3 does not exist"),
        (b"@", "Tag 0x40 begins no value"),
        (b"", "ends in the middle"),
        (b"H\x48Z\x90Z", "a dict as key"),
        (b"C\x14java.math.BigDecimal\x91\x05value\x60\x01x", "no number"),
        (b"C\x14java.math.BigDecimal\x91\x05value\x60\x03NaN", "not finite"),
        (b"C\x14java.math.BigDecimal\x91\x05other\x60\x01x", "make no value"),
        (b"\x91\x91", "1 bytes follow"),
        (lists_of_lists(), "refers to its own parts until they are more than 67108864 bytes"),
        (map_with_two_such_keys(), "refers to its own parts"),
        (b"X" + DEFINITION + big_integer(2**200), "length of 1606938044258990275541962092341162602522"),
        (b"Q" + lists_that_all_hold_each_other(), r"Reference \[\[\["),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_made_to_harm_is_refused_at_once(data: bytes, complaint: str) -> None:
    with pytest.raises(Hessian2Error, match=complaint):
        decode(data)


def test_definitions_from_the_wire_do_not_pile_up() -> None:
    classes = JavaClasses()
    classes.register("headrace.interop.Colour", Colour)
    for number in range(3000):
        decode(encode(JavaObject(f"org.example.C{number}", {"f": 1})), classes=classes)
        decode(
            encode(JavaObject("headrace.interop.Colour", {"name": "RED", f"f{number}": 1})), classes=classes
        )
        decode(encode(JavaObject("headrace.interop.Colour", {"name": "RED", "f" * 5000: 1})), classes=classes)
    assert len(classes.readers) == 1024
    assert max(len(name) for _, fields in classes.readers for name in fields) < 5000


def test_an_error_deep_in_a_date_is_still_the_one_error() -> None:
    handle = "com.alibaba.com.caucho.hessian.io.java8.LocalDateTimeHandle"
    with pytest.raises(Hessian2Error, match="make no value"):
        decode(encode(JavaObject(handle, {"date": 5, "time": datetime(2024, 1, 1, tzinfo=UTC)})))


@java_class("com.acme.Fussy", classes=CLASSES)
@dataclass
class Fussy:
    name: str

    def __new__(cls, *arguments: object, **fields: object) -> Fussy:
        if not arguments and not fields:
            raise LookupError("a Fussy is made with its name")
        return super().__new__(cls)


def test_whatever_a_registered_class_raises_is_the_one_error() -> None:
    with pytest.raises(Hessian2Error, match="LookupError: a Fussy is made with its name"):
        decode(encode(JavaObject("com.acme.Fussy", {"name": "x"})), classes=CLASSES)


def test_a_value_of_any_size_or_shape_is_told_in_few_words() -> None:
    for body in (lists_that_all_hold_each_other(), encode(["x" * 100_000] * 1000), encode({"k": b"x" * 99})):
        assert len(brief(decode(body), 50)) <= 51
    endless = JavaObject("com.acme.A", {"s": "half \ud800"})
    endless.fields["me"] = endless
    assert brief(endless, 55) == '{"class": "com.acme.A", "s": "half \\ud800", "me": {"class": …'
    assert brief([None, True, 1, 1.5, "a", Colour.RED, {"k": []}, 2**300, b"xy", {}]) == (
        '[null, true, 1, 1.5, "a", "RED", {"k": []}, <a number of 301 bits>, <2 bytes>, {}]'
    )
    assert brief([datetime(2024, 1, 1, tzinfo=UTC), object()]) == '["2024-01-01 00:00:00+00:00", <object>]'
