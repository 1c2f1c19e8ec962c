"""Java's bytes for every kind of value, written by interop/dubbo's `Golden`, against the codec.

`CASES` says what each is in Python. `make interop` runs the other way: Java reads Python's bytes of the same cases.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from dubbo_model import Address, Colour, Employee, OrderError, Person, person

from headrace.services.hessian2 import (
    Byte,
    Char,
    Float,
    JavaClasses,
    JavaException,
    JavaObject,
    Locale,
    Long,
    MonthDay,
    Period,
    Short,
    StackTraceElement,
    Typed,
    Year,
    YearMonth,
    decode,
    encode,
)

GOLDEN = Path(__file__).with_name("hessian2_golden.json")


def array_list(*items: object) -> Typed:
    return Typed(list(items), "java.util.ArrayList")


def _employee() -> Employee:
    employee = Employee(name="Eve", title="chief", friend=person())
    employee.manager = employee
    return employee


def _exceptions() -> dict[str, BaseException]:
    trace = [StackTraceElement("headrace.interop.Shop", "order", "Shop.java", 12)]
    cause = JavaException("java.lang.IllegalStateException", "empty", stack_trace=trace)
    failure = JavaException(
        "headrace.interop.OrderException",
        "no such order",
        stack_trace=trace,
        cause=cause,
        fields={"errorCode": 7},
    )
    return {"exception": cause, "own exception": failure}


def _cycles() -> dict[str, Any]:
    inner = array_list("inner")
    outer: list[Any] = [inner, inner]
    outer.append(Typed(outer, "java.util.ArrayList"))
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    return {"shared and cyclic list": outer[2], "cyclic map": cyclic}


def _everything() -> list[Any]:
    one = Decimal("1.5")
    inner = Typed(["inner"], "java.util.ArrayList")
    return [
        *(one, one, Colour.RED, Colour.RED, EPOCH, date(2024, 1, 2), inner, inner),
        *(b"\x01", Typed([1], "[int"), Locale("en_US"), inner),
    ]


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = datetime(2024, 5, 6, 13, 0, 0, 123_000, tzinfo=UTC)
KEY = UUID("01234567-89ab-4def-8123-456789abcdef")
EDGES = [
    *(0, 1, -1, 15, 16, -8, -9, 47, 48, -16, -17, 2047, 2048, -2048, -2049),
    *(262143, 262144, -262144, -262145, 2**31 - 1, -(2**31)),
]
DOUBLES = {
    text: float(text)
    for text in (
        *(
            "0.0",
            "1.0",
            "-1.0",
            "2.0",
            "127.0",
            "128.0",
            "-128.0",
            "-129.0",
            "32767.0",
            "32768.0",
            "-32768.0",
        ),
        *("-32769.0", "0.5", "12.25", "0.001", "-0.001", "3.14159", "1.0E9", "2147483.647", "-2147483.648"),
        *("2147483.648", "1.0E300", "4.9E-324", "1.7976931348623157E308", "NaN", "Infinity", "-Infinity"),
    )
}
LENGTHS = (0, 1, 31, 32, 1023, 1024, 32767, 32768, 32769, 70000)


# What Python sends for each case. What it reads is the same without the `Typed`, `Long` and so on around it.
CASES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    **{f"int {edge}": edge for edge in EDGES},
    **{f"long {edge}": Long(edge) for edge in EDGES},
    **{f"long {edge}": edge for edge in (2**31, -(2**31) - 1, 2**63 - 1, -(2**63))},
    "short -32768": Short(-32768),
    "byte 127": Byte(127),
    **{f"double {text}": value for text, value in DOUBLES.items()},
    "float 0.1": Float(0.1),
    "float 2.5": Float(2.5),
    "decimal 0": Decimal(0),
    "decimal 1.10": Decimal("1.10"),
    "decimal -123456789012345678901234567890.123456789": Decimal("-123456789012345678901234567890.123456789"),
    "decimal 1E+400": Decimal("1E+400"),
    "decimal 1E-400": Decimal("1E-400"),
    **{
        f"integer {number}": Typed(number, "java.math.BigInteger")
        for number in (0, 1, -1, 2**31, 2**63, -(2**64) - 1)
    },
    **{f"ascii {length}": "a" * length for length in LENGTHS},
    **{f"latin {length}": "é" * length for length in LENGTHS},
    **{f"han {length}": "漢" * length for length in LENGTHS},
    **{f"emoji {length}": "😀" * length for length in LENGTHS},
    "pair across chunks": "a" * 32767 + "😀b",
    "lone surrogate": "x\ud83dy",
    "control": "\x00\x01\x7f\x80\u07ff\u0800\uffff",
    "char": Char("x"),
    "han char": Char("漢"),
    "char array": Typed("chars", "char[]"),
    **{
        f"bytes {length}": bytes(i * 31 & 0xFF for i in range(length))
        for length in (0, 1, 15, 16, 1023, 1024, 4092, 4093, 4094, 8186, 8187, 70000)
    },
    "date epoch": EPOCH,
    "date minute": MOMENT.replace(microsecond=0),
    "date millis": MOMENT,
    "date before epoch": EPOCH - timedelta(milliseconds=1),
    "date minute before epoch": EPOCH - timedelta(minutes=1),
    "date far": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    "sql timestamp": Typed(MOMENT, "java.sql.Timestamp"),
    "sql date": Typed(MOMENT.replace(microsecond=0), "java.sql.Date"),
    "calendar": Typed(MOMENT, "java.util.Calendar"),
    "local date": date(2024, 2, 29),
    "local time": time(23, 59, 58, 123_456),
    "local date time": datetime(2024, 2, 29, 1, 2, 3),
    "instant": Typed(MOMENT.replace(microsecond=123_456), "java.time.Instant"),
    "instant before epoch": Typed(EPOCH - timedelta(seconds=1.5), "java.time.Instant"),
    "duration": timedelta(seconds=-90061, microseconds=5),
    "period": Period(1, -2, 3),
    "year": Year(2024),
    "year month": YearMonth(2024, 2),
    "month day": MonthDay(2, 29),
    "offset time": time(1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
    "offset date time": Typed(
        datetime(2024, 2, 29, 1, 2, 3, tzinfo=timezone(-timedelta(hours=3, minutes=30))),
        "java.time.OffsetDateTime",
    ),
    "zoned date time": Typed(
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Paris")), "java.time.ZonedDateTime"
    ),
    "zone id": Typed("Europe/Paris", "java.time.ZoneId"),
    "locale": Locale("en_US"),
    "locale language": Locale("de"),
    "uuid": KEY,
    **{f"list {size}": array_list(*range(size)) for size in (0, 1, 7, 8, 100)},
    "linked list": Typed(["a", None, Long(3)], "java.util.LinkedList"),
    "arrays as list": Typed(["a", "b"], "java.util.Arrays$ArrayList"),
    "deque": Typed([1, 2], "java.util.ArrayDeque"),
    "singleton list": Typed(["x"], "java.util.Collections$SingletonList"),
    "empty list": Typed([], "java.util.Collections$EmptyList"),
    "hash set": {"a", "b", 3},
    "linked hash set": Typed(["z", "a"], "java.util.LinkedHashSet"),
    "tree set": Typed(["a", "z"], "java.util.TreeSet"),
    "enum set": JavaObject(
        "com.alibaba.com.caucho.hessian.io.EnumSetHandler",
        {
            "objects": Typed([Colour.RED, Colour.GREEN], "[object"),
            "type": JavaObject("java.lang.Class", {"name": "headrace.interop.Colour"}),
        },
    ),
    "hash map": {"path": "headrace.interop.Greeter", "nothing": None, "timeout": "3000"},
    "linked hash map": Typed({"one": 1}, "java.util.LinkedHashMap"),
    "tree map": Typed({"a": Long(1), "b": Long(2)}, "java.util.TreeMap"),
    "map with many keys": Typed(
        {1: "int", Long(2): "long", Colour.RED: "enum", False: "boolean", None: "null"},
        "java.util.LinkedHashMap",
    ),
    "int array": Typed([1, -1, 100000], "int[]"),
    "long array": Typed([1, 2**63 - 1], "long[]"),
    "short array": Typed([1, -1], "short[]"),
    "float array": Typed([0.1, 1], "float[]"),
    "double array": Typed([0.1, 1], "double[]"),
    "boolean array": Typed([True, False], "boolean[]"),
    "string array": Typed(["a", None, "c"], "java.lang.String[]"),
    "object array": Typed(["a", 1, None], "java.lang.Object[]"),
    "integer object array": Typed([1, None], "java.lang.Integer[]"),
    "two dimensions": Typed([[1, 2], [], [3]], "int[][]"),
    "date array": Typed([EPOCH], "java.util.Date[]"),
    "bean array": Typed([Address("High Street", 1), None], "headrace.interop.Address[]"),
    "empty array": Typed([], "int[]"),
    "references of all kinds": Typed(_everything(), "java.util.ArrayList"),
    "type references": Typed(
        [
            value
            for i in range(3)
            for value in (
                Typed([i], "java.util.LinkedList"),
                Typed({"k": i}, "java.util.TreeMap"),
                Typed([i], "long[]"),
            )
        ],
        "java.util.ArrayList",
    ),
    "enum": Colour.GREEN,
    "enum with body": Colour.BLUE,
    "empty person": Person(),
    "person": person(),
    "employee": _employee(),
    "many classes": Typed(
        [
            JavaObject(f"headrace.interop.ManyClasses$C{i:02}", {f"field{i}": i})
            for _ in range(2)
            for i in range(18)
        ],
        "java.util.ArrayList",
    ),
    **_cycles(),
    **_exceptions(),
}
# Java orders a bean's fields from the last to the first and a hash set by hash; its BigInteger carries caches.
OTHER_BYTES = {"hash set", "bean array", "empty person", "person", "employee"} | {
    name for name in CASES if name.startswith("integer ") or name in _exceptions()
}


def golden() -> dict[str, bytes]:
    texts: dict[str, str] = json.loads(GOLDEN.read_text())
    return {
        name: zlib.decompress(base64.b64decode(text[5:])) if text.startswith("zlib:") else bytes.fromhex(text)
        for name, text in texts.items()
    }


JAVA = golden()


def plain(value: Any) -> Any:
    """What `value` is once it has been read: without the marks of its Java type."""
    if isinstance(value, Typed):
        inner = plain(value.value)
        if value.java_type.endswith("Set"):
            return set(inner)
        return [struct_float(item) for item in inner] if value.java_type == "float[]" else inner
    if type(value) is list:
        return [plain(item) for item in value]
    if type(value) is dict:
        return {plain(key): plain(item) for key, item in value.items()}
    return struct_float(value) if type(value) is Float else value


def struct_float(value: float) -> float:
    result: float = struct.unpack(">f", struct.pack(">f", value))[0]
    return result


def test_every_case_of_java_has_its_python_value() -> None:
    assert set(CASES) == set(JAVA)


@pytest.mark.parametrize(
    "name",
    [name for name in CASES if name not in {"double NaN", "enum set", *_cycles(), *_exceptions()}],
)
def test_javas_bytes_are_read_as_the_value(name: str) -> None:
    assert decode(JAVA[name]) == plain(CASES[name])


@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHER_BYTES])
def test_python_writes_the_very_bytes_java_writes(name: str) -> None:
    assert encode(CASES[name]) == JAVA[name]


@pytest.mark.parametrize("name", sorted(OTHER_BYTES))
def test_what_python_writes_otherwise_reads_the_same(name: str) -> None:
    again = decode(encode(CASES[name]))
    java = decode(JAVA[name])
    assert again == java or (isinstance(java, Exception) and vars(again) == vars(java))


def test_javas_nan_is_one() -> None:
    assert math.isnan(decode(JAVA["double NaN"]))


def test_javas_enum_set_is_a_set_of_members() -> None:
    assert decode(JAVA["enum set"]) == {Colour.RED, Colour.GREEN}


def test_javas_cycles_and_shared_values_are_the_same_objects() -> None:
    shared = decode(JAVA["shared and cyclic list"])
    assert shared[0] is shared[1]
    assert shared[2] is shared
    cyclic = decode(JAVA["cyclic map"])
    assert cyclic["self"] is cyclic
    full = decode(JAVA["person"])
    assert full.friend is full
    assert full.places[0] is full.places[1] is full.home is full.by_number[1]
    employee = decode(JAVA["employee"])
    assert employee.manager is employee
    assert employee.friend == full


def test_javas_exceptions_carry_message_fields_cause_and_trace() -> None:
    failure = decode(JAVA["own exception"])
    assert isinstance(failure, OrderError)
    assert (str(failure), failure.error_code) == ("no such order", 7)
    cause = failure.__cause__
    assert isinstance(cause, JavaException)
    assert str(cause) == "java.lang.IllegalStateException: empty"
    assert cause.__cause__ is None
    assert [str(line) for line in cause.stack_trace] == ["headrace.interop.Shop.order(Shop.java:12)"]


def test_javas_exceptions_of_unknown_classes_are_exceptions_too() -> None:
    failure = decode(JAVA["own exception"], classes=JavaClasses())
    assert isinstance(failure, JavaException)
    assert (failure.class_name, failure.fields) == ("headrace.interop.OrderException", {"errorCode": 7})


def test_javas_beans_of_unknown_classes_are_plain_objects() -> None:
    stranger = decode(JAVA["person"], classes=JavaClasses())
    assert isinstance(stranger, JavaObject)
    assert stranger["friend"] is stranger
    assert stranger["home"] == JavaObject(
        "headrace.interop.Address", {"houseNumber": 1, "street": "High Street"}
    )
