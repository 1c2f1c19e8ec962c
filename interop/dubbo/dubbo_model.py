"""The Python side of package headrace.interop: its beans, its exception and its service."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

from headrace.services import current, interface
from headrace.services.hessian2 import (
    Byte,
    Char,
    Float,
    Int,
    JavaException,
    JavaType,
    Long,
    Short,
    java_class,
)

BigInteger = Annotated[int, JavaType("java.math.BigInteger")]
Instant = Annotated[datetime, JavaType("java.time.Instant")]
LocalDateTime = Annotated[datetime, JavaType("java.time.LocalDateTime")]
Ints = Annotated[list[int], JavaType("int[]")]
Strings = Annotated[list[str], JavaType("java.lang.String[]")]


@java_class("headrace.interop.Colour")
class Colour(Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


@java_class("headrace.interop.Address")
@dataclass
class Address:
    street: str | None = None
    house_number: Int = 0


@java_class("headrace.interop.Person")
@dataclass
class Person:
    active: bool = False
    level: Byte = 0
    rank: Short = 0
    age: Int = 0
    id: Long = 0
    weight: Float = 0.0
    height: float = 0.0
    initial: Char = "\0"
    boxed_int: Int | None = None
    boxed_long: Long | None = None
    boxed_double: float | None = None
    boxed_boolean: bool | None = None
    name: str | None = None
    born: datetime | None = None
    balance: Decimal | None = None
    huge: BigInteger | None = None
    colour: Colour | None = None
    joined: date | None = None
    seen: LocalDateTime | None = None
    instant: Instant | None = None
    photo: bytes | None = None
    numbers: Ints | None = None
    longs: Annotated[list[int], JavaType("long[]")] | None = None
    doubles: Annotated[list[float], JavaType("double[]")] | None = None
    flags: Annotated[list[bool], JavaType("boolean[]")] | None = None
    names: Strings | None = None
    addresses: Annotated[list[Address], JavaType("headrace.interop.Address[]")] | None = None
    home: Address | None = None
    friend: Person | None = field(default=None, repr=False, compare=False)
    anything: Any = None
    tags: list[str] | None = None
    long_list: list[Long] | None = None
    places: list[Address] | None = None
    roles: set[str] | None = None
    scores: dict[str, Int] | None = None
    by_number: dict[Long, Address] | None = None


def person() -> Person:
    """The same as Java's Cases.person()."""
    home = Address("High Street", 1)
    made = Person(
        active=True,
        level=-3,
        rank=300,
        age=42,
        id=7,
        weight=70.5,
        height=1.85,
        initial="J",
        boxed_int=5,
        boxed_long=6,
        boxed_double=7.0,
        boxed_boolean=True,
        name="Jörg 😀",
        born=datetime(2024, 5, 6, 13, 0, 0, 123_000, tzinfo=UTC),
        balance=Decimal("12.30"),
        huge=2**63,
        colour=Colour.RED,
        joined=date(2024, 2, 29),
        seen=datetime(2024, 2, 29, 1, 2, 3),
        instant=datetime(2024, 5, 6, 13, tzinfo=UTC),
        photo=b"\x01\x02\x03",
        numbers=[1, 2],
        longs=[3, 4],
        doubles=[0.5],
        flags=[True],
        names=["a", "b"],
        addresses=[Address("Low Street", 2)],
        home=home,
        anything=[1, "two"],
        tags=["x", "y"],
        long_list=[1, 2],
        places=[home, home],
        roles={"admin"},
        scores={"chess": 3},
        by_number={1: home},
    )
    made.friend = made
    return made


@java_class("headrace.interop.Employee")
@dataclass
class Employee(Person):
    title: str | None = None
    manager: Person | None = field(default=None, repr=False, compare=False)


@java_class("headrace.interop.OrderException")
class OrderError(Exception):
    error_code: Int

    def __init__(self, message: str, error_code: int) -> None:
        super().__init__(message)
        self.error_code = error_code


@interface("headrace.interop.AllTypes")
class AllTypes:
    """Every ordinary type as argument and result, and every way a call can end."""

    def __init__(self, name: str = "python") -> None:
        self._name = name
        self._fired: Counter[str] = Counter()

    def echo_boolean(self, value: bool) -> bool:
        return value

    def echo_byte(self, value: Byte) -> Byte:
        return value

    def echo_short(self, value: Short) -> Short:
        return value

    def echo_int(self, value: Int) -> Int:
        return value

    def echo_long(self, value: Long) -> Long:
        return value

    def echo_float(self, value: Float) -> Float:
        return value

    def echo_double(self, value: float) -> float:
        return value

    def echo_char(self, value: Char) -> Char:
        return value

    def echo_integer(self, value: Int | None) -> Int | None:
        return value

    def echo_boxed_long(self, value: Long | None) -> Long | None:
        return value

    def echo_string(self, value: str | None) -> str | None:
        return value

    def echo_bytes(self, value: bytes) -> bytes:
        return value

    def echo_ints(self, value: Ints) -> Ints:
        return value

    def echo_strings(self, value: Strings) -> Strings:
        return value

    def echo_date(self, value: datetime) -> datetime:
        return value

    def echo_local_date(self, value: date) -> date:
        return value

    def echo_local_date_time(self, value: LocalDateTime) -> LocalDateTime:
        return value

    def echo_instant(self, value: Instant) -> Instant:
        return value

    def echo_decimal(self, value: Decimal) -> Decimal:
        return value

    def echo_big_integer(self, value: BigInteger) -> BigInteger:
        return value

    def echo_colour(self, value: Colour) -> Colour:
        return value

    def echo_person(self, value: Person) -> Person:
        return value

    def echo_people(self, value: list[Person]) -> list[Person]:
        return value

    def echo_longs(self, value: list[Long]) -> list[Long]:
        return value

    def echo_set(self, value: set[str]) -> set[str]:
        return value

    def echo_map(self, value: dict[str, Person | None]) -> dict[str, Person | None]:
        return value

    def echo_object(self, value: object) -> object:
        return value

    def join(self, text: str, number: Int, big: Long, ratio: float, flag: bool, words: list[str]) -> str:
        return "|".join([text, str(number), str(big), str(ratio), str(flag).lower(), ",".join(words)])

    def over(self, value: object) -> str:
        return f"string {value}" if isinstance(value, str) else f"int {value}"

    def nothing(self) -> None:
        return None

    def fail_own(self, message: str, code: Int) -> None:
        raise OrderError(message, code) from JavaException("java.lang.IllegalStateException", "the cause")

    def fail_checked(self, message: str) -> None:
        raise OSError(message)

    def fail_runtime(self, message: str) -> None:
        raise ValueError(message)

    def attachments(self) -> dict[str, str]:
        return {key: str(value) for key, value in current().attachments.items()}

    def attach(self, reply: str) -> str:
        current().reply["reply"] = reply
        return reply

    def fire(self, id: str) -> None:
        self._fired[id] += 1

    def fired(self, id: str) -> Int:
        return self._fired[id]

    async def slow(self, millis: Int) -> str:
        await asyncio.sleep(millis / 1000)
        return f"slept {millis}"

    def whoami(self) -> str:
        return self._name


@interface("headrace.interop.Echo")
class Echo:
    """The service under load."""

    def echo(self, text: str) -> str:
        return text
