from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Generic, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field

from headrace.services.hessian2 import (
    Byte,
    Char,
    Decoder,
    Encoder,
    Float,
    Hessian2Error,
    Int,
    JavaClasses,
    JavaException,
    JavaObject,
    JavaType,
    Locale,
    Long,
    MonthDay,
    Period,
    Short,
    StackTraceElement,
    Typed,
    Year,
    YearMonth,
    convert,
    decode,
    encode,
    java_class,
    java_type_writer,
    writer_for,
)

ACME = JavaClasses()
PARIS = ZoneInfo("Europe/Paris")


@java_class("com.acme.Colour", classes=ACME)
class Colour(Enum):
    RED = "r"
    BLUE = "b"


@java_class("com.acme.Item", classes=ACME)
@dataclass(frozen=True)
class Item:
    sku: str
    unit_price: Decimal = Decimal(0)


@java_class("com.acme.Order", classes=ACME)
@dataclass
class Order:
    order_id: Long
    items: tuple[Item, ...]
    colour: Colour | None = None
    line_numbers: list[Long] = field(default_factory=list)
    parent: Order | None = None
    notes: dict[str, Short] = field(default_factory=dict)
    weight: float = 0.0


@dataclass
class Node:
    name: str
    next: Node | None = None
    others: list[Node] = field(default_factory=list)


T = TypeVar("T")


@dataclass
class Page(Generic[T]):
    first: T | None
    items: list[T]
    next: Page[T] | None = None


@java_class("com.acme.OrderRejected", classes=ACME)
class OrderRejectedError(Exception):
    reason_code: int


def through(value: object) -> object:
    return decode(encode(value, classes=ACME), classes=ACME)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        *(
            edge + step
            for edge in (-16, 48, 2048, -2048, 2**18, -(2**18), 2**31, -(2**31))
            for step in (-1, 0)
        ),
        *(2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, -(2**200), 10**40),
        *(
            0.0,
            1.0,
            -1.0,
            127.0,
            -128.0,
            128.0,
            32767.0,
            -32768.0,
            32768.0,
            0.001,
            -12.25,
            1e300,
            float("inf"),
        ),
        *("é" * 70_000, "😀" * 40_000, "a" + "😀" * 40_000, "mixed é 漢 😀", "\x00", "lone \ud83d"),
        *("a" * length for length in (0, 31, 32, 1023, 1024, 32767, 32768, 32769, 100_000)),
        *("é" * length for length in (31, 32, 1023, 1024)),
        *(b"x" * length for length in (0, 15, 16, 1023, 1024, 4093, 4094, 100_000)),
        datetime(2024, 5, 6, 7, 8, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        datetime(2024, 5, 6, 7, 8, 9, 123_456),
        date(2024, 2, 29),
        time(23, 59, 59, 999_999),
        time(1, 2, tzinfo=timezone(timedelta(hours=2))),
        timedelta(days=-1, microseconds=5),
        Decimal("-1.10"),
        Decimal("1E+400"),
        UUID("ffffffff-ffff-4fff-8fff-fffffffffffe"),
        Locale("en_US"),
        Period(1, 2, 3),
        Year(2024),
        YearMonth(2024, 2),
        MonthDay(2, 29),
        [],
        [1] * 7,
        [1, "two", None, [3.0]] * 2,
        {},
        {"a": [1, {"b": None}], 2: True, None: 0.5},
        {1, "two", 3.5},
        JavaObject(
            "org.example.Thing", {"name": "x", "inner": JavaObject("org.example.Thing", {"name": "y"})}
        ),
        Colour.BLUE,
        Order(1, (Item("a", Decimal("1.5")), Item("b")), Colour.RED, [1, 2], Order(2, ())),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    result = through(value)
    assert result == value
    assert type(result) is type(value)


def test_minus_zero_and_nan_survive() -> None:
    assert str(through(-0.0)) == "-0.0"
    assert str(through(float("nan"))) == "nan"


def test_a_bean_can_refer_to_itself() -> None:
    order = Order(1, ())
    order.parent = order
    copy = through(order)
    assert isinstance(copy, Order)
    assert copy.parent is copy


def test_shared_values_are_still_shared_across_the_values_of_a_body() -> None:
    shared = {"k": [1]}
    encoder = Encoder(ACME)
    encoder.encode_many([shared, [shared, Colour.RED, Colour.RED], shared])
    decoder = Decoder(encoder.getvalue(), ACME)
    first, (second, *colours), third = decoder.decode(), decoder.decode(), decoder.decode()
    assert first is second is third
    assert colours == [Colour.RED, Colour.RED]
    assert decoder.remaining == 0


def test_a_body_with_more_than_sixteen_classes_keeps_them_apart() -> None:
    objects = [JavaObject(f"org.example.C{n}", {f"f{n}": n}) for n in range(40)]
    assert through(objects + objects[::-1]) == objects + objects[::-1]


def test_zoned_times_keep_zone_and_offset_when_sent_as_such() -> None:
    second_half_past_two = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=PARIS)
    result = through(Typed(second_half_past_two, "java.time.ZonedDateTime"))
    assert isinstance(result, datetime)
    assert (result.replace(tzinfo=None), result.fold, result.tzinfo) == (
        datetime(2024, 10, 27, 2, 30),
        1,
        PARIS,
    )

    offset = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30)))
    assert through(Typed(offset, "java.time.OffsetDateTime")).utcoffset() == timedelta(hours=-3, minutes=-30)
    assert through(Typed(offset, "java.time.ZonedDateTime")) == offset
    assert through(Typed(offset, "java.time.Instant")) == offset
    assert through(Typed(offset, "java.sql.Timestamp")) == offset
    assert through(Typed(offset, "java.util.Calendar")) == offset


@pytest.mark.parametrize(
    ("value", "annotation", "wire"),
    [
        (5, Long, "e5"),
        (5, Int, "95"),
        (5, Short, "95"),
        (-1, Byte, "8f"),
        (2, float, "5d02"),
        (0.1, Float, "443fb99999a0000000"),
        ("x", Char, "0178"),
        ([1, None], list[Long], "7ae14e"),
        ([1], list[Long] | None, "79e1"),
        ((1,), tuple[Long, ...], "79e1"),
        ({"a": 1}, dict[str, Long], "480161e15a"),
        ({1}, set[Long], "7111" + b"java.util.HashSet".hex() + "e1"),
        ([1, 2], Annotated[list[int], JavaType("long[]")], "7205" + b"[long".hex() + "e1e2"),
        (
            [[1]],
            Annotated[list[list[int]], JavaType("int[][]")],
            "7105" + b"[[int".hex() + "7104" + b"[int".hex() + "91",
        ),
        (["a"], Annotated[list[str], JavaType("java.lang.String[]")], "7107" + b"[string".hex() + "0161"),
        (b"ab", Annotated[bytes, JavaType("byte[]")], "226162"),
        ("ab", Annotated[str, JavaType("char[]")], "026162"),
        (
            {},
            Annotated[dict[str, int], JavaType("java.util.TreeMap")],
            "4d11" + b"java.util.TreeMap".hex() + "5a",
        ),
        (None, Annotated[datetime, JavaType("java.time.Instant")], "4e"),
    ],
)
def test_an_annotation_decides_the_java_type(value: object, annotation: object, wire: str) -> None:
    encoder = Encoder()
    encoder.encode(value, writer_for(annotation))
    assert encoder.getvalue().hex() == wire


def test_values_can_carry_their_java_type_themselves() -> None:
    assert (
        encode([Long(5), Short(5), Char("x"), Float(0.5), Locale("de")])[:8].hex()
        == "7de5950178" + "5f000001"[:6]
    )
    assert encode(Typed(7, "long")) == encode(Long(7))
    assert java_type_writer("java.lang.Object") is None


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (Byte(128), "128 does not fit a Java byte."),
        (Short(-32769), "-32769 does not fit a Java short."),
        (Int(2**31), "2147483648 does not fit a Java int."),
        (Long(2**63), "9223372036854775808 does not fit a Java long."),
        (Float(1e39), "1e+39 does not fit a Java float."),
        (Char("ab"), "'ab' is no Java char, which is a single character up to U+FFFF."),
        (Decimal("NaN"), "NaN is no java.math.BigDecimal, which is always a finite number."),
        (Typed("five", "long"), "A str cannot be sent as a Java long."),
        (Typed(datetime(2024, 1, 1), "java.util.Date"), "has no time zone"),
        (object(), 'object has no Java class: name it with @java_class("package.object").'),
        (Colour.RED, "Colour has no Java class"),
        (Order(1, ()), "Order has no Java class"),
        (Period(2**40), "A Period cannot be sent: "),
    ],
)
def test_a_value_that_java_cannot_hold_is_refused_with_the_reason(value: object, complaint: str) -> None:
    with pytest.raises(Hessian2Error) as error:
        encode(value)
    assert complaint in str(error.value)


def test_nesting_without_end_is_refused_when_sending_too() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Hessian2Error, match="nested too deeply"):
        encode(value)


def test_only_registered_classes_are_built() -> None:
    data = encode(Order(1, (Item("a"),), Colour.RED), classes=ACME)
    stranger = decode(data, classes=JavaClasses())
    assert isinstance(stranger, JavaObject)
    assert stranger.class_name == "com.acme.Order"
    assert stranger["orderId"] == 1
    assert stranger["colour"] == JavaObject("com.acme.Colour", {"name": "RED"})
    assert encode(stranger) != b""


def test_unknown_fields_are_left_out_and_missing_ones_are_null_or_default() -> None:
    wire = encode(JavaObject("com.acme.Order", {"orderId": 7, "invented": [1]}))
    assert decode(wire, classes=ACME) == Order(7, None)  # type: ignore[arg-type]


def test_a_field_of_the_wrong_type_is_refused_by_name_of_both_types() -> None:
    wire = encode(JavaObject("com.acme.Order", {"orderId": "seven", "items": []}))
    with pytest.raises(Hessian2Error, match="Expected int, got str"):
        decode(wire, classes=ACME)


def test_an_unknown_enum_constant_is_refused() -> None:
    with pytest.raises(Hessian2Error, match=r'com\.acme\.Colour has no constant "GREEN" here'):
        decode(encode(JavaObject("com.acme.Colour", {"name": "GREEN"})), classes=ACME)


def test_a_python_exception_reaches_java_as_one_and_comes_back_with_cause_and_trace() -> None:
    try:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise ValueError("no such order") from error
    except ValueError as error:
        result = through(error)
    assert isinstance(result, JavaException)
    assert str(result) == "java.lang.IllegalArgumentException: no such order"
    assert isinstance(result.__cause__, JavaException)
    assert result.__cause__.class_name == "java.util.NoSuchElementException"
    (frame,) = result.stack_trace
    assert frame.file_name == "test_hessian2.py"
    assert (
        frame.method_name == "test_a_python_exception_reaches_java_as_one_and_comes_back_with_cause_and_trace"
    )


def test_a_registered_exception_keeps_its_class_and_fields() -> None:
    error = OrderRejectedError("too late")
    error.reason_code = 12
    result = through(error)
    assert isinstance(result, OrderRejectedError)
    assert (str(result), result.reason_code) == ("too late", 12)


def test_an_exception_of_no_java_kin_names_its_python_class() -> None:
    class OddError(Exception):
        pass

    result = through(OddError("strange"))
    assert isinstance(result, JavaException)
    assert (result.class_name, result.message) == ("java.lang.RuntimeException", "OddError: strange")


def test_a_java_exception_can_be_sent_on_with_all_it_carries() -> None:
    original = JavaException(
        "com.acme.Failure",
        "broken",
        stack_trace=[StackTraceElement("com.acme.Main", "run", "Main.java", 12)],
        cause=JavaException("java.io.IOException"),
        fields={"code": 3},
    )
    result = through(original)
    assert isinstance(result, JavaException)
    assert vars(result) == vars(original)
    assert str(result.__cause__) == "java.io.IOException"
    assert [str(element) for element in result.stack_trace] == ["com.acme.Main.run(Main.java:12)"]


def test_pydantic_models_are_validated_from_the_wire() -> None:
    classes = JavaClasses()

    @java_class("com.acme.User", classes=classes)
    class User(BaseModel):
        user_name: str
        ages: set[int] = Field(default_factory=set)

    user = User(user_name="ann", ages={1, 2})
    assert decode(encode(user, classes=classes), classes=classes) == user
    with pytest.raises(Hessian2Error, match="User refuses its fields"):
        decode(encode(JavaObject("com.acme.User", {"userName": 5})), classes=classes)


def test_any_mapping_or_sequence_can_be_sent() -> None:
    assert through(OrderedDict(a=1)) == {"a": 1}
    assert through(range(3)) == [0, 1, 2]


def test_maps_become_beans_where_an_annotation_asks_for_them() -> None:
    generic = {
        "class": "com.acme.Order",
        "orderId": 1,
        "items": [{"sku": "a", "unitPrice": "1.5"}],
        "colour": "RED",
    }
    assert convert(generic, Order) == Order(1, (Item("a", Decimal("1.5")),), Colour.RED)
    assert convert([1, 2], set[int]) == {1, 2}
    assert convert(5, float) == 5.0
    assert convert([1, "a"], tuple[int, str]) == (1, "a")
    assert convert({"a": [1]}, dict[str, tuple[int, ...]]) == {"a": (1,)}
    with pytest.raises(Hessian2Error, match="Expected int, got bool"):
        convert(True, int)


def test_parts_that_are_shared_or_refer_back_stay_so_where_maps_become_beans() -> None:
    shared: dict[str, object] = {"name": "shared"}
    shared["next"] = shared
    whole = convert({"name": "whole", "next": shared, "others": [shared, shared]}, Node)
    assert whole.next is whole.others[0] is whole.others[1]
    assert whole.next.next is whole.next
    many: dict[str, object] = {"name": "leaf"}
    for _ in range(60):  # unfolded, more of them than there are atoms
        many = {"name": "branch", "others": [many, many]}
    assert convert(many, Node).name == "branch"


def test_a_bean_without_one_of_its_fields_cannot_be_sent_and_says_so() -> None:
    order = Order(1, ())
    del order.items
    with pytest.raises(Hessian2Error, match=r"A Order cannot be sent: AttributeError: .*items"):
        encode(order, classes=ACME)


def test_many_objects_of_an_unknown_class_can_be_in_a_set_or_keys_of_a_map() -> None:
    strangers = [JavaObject("com.acme.Stranger", {"number": number}) for number in range(200)]
    assert through(set(strangers)) == set(strangers)
    assert through(dict.fromkeys(strangers, "x")) == dict.fromkeys(strangers, "x")


def test_a_set_whose_members_python_cannot_tell_apart_by_hash_stays_a_list() -> None:
    alike = [JavaObject("com.acme.Stranger", {"of": [number]}) for number in range(100)]
    assert through(Typed(alike, "java.util.HashSet")) == alike


def test_a_generic_bean_is_made_of_what_its_annotation_says() -> None:
    item, other = {"sku": "a"}, {"sku": "b"}
    whole = {"first": item, "items": [item, other], "next": {"first": None, "items": [other]}}
    assert convert(whole, Page[Item]) == Page(Item("a"), [Item("a"), Item("b")], Page(None, [Item("b")]))
    assert convert({"first": 1, "items": [2]}, Page[int]) == Page(1, [2])
    assert convert({"first": 1, "items": [{}]}, Page) == Page(1, [{}])
    with pytest.raises(Hessian2Error, match="Expected int, got str"):
        convert({"first": 1, "items": ["two"]}, Page[int])
