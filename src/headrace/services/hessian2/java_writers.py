"""Writers of Java's own classes: numbers, dates and times, UUIDs, locales.

Each lays its object out field by field as Java's hessian-lite does; `java_builders` reads them back.
"""

from __future__ import annotations

import struct
import zoneinfo
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.output import (
    EPOCH,
    Definition,
    Output,
    encode_int,
    encode_long,
    millis_of,
    write_bool,
    write_double,
    write_int,
    write_long,
    write_millis,
    write_none,
    write_str,
)
from headrace.services.hessian2.strings import encode_string
from headrace.services.hessian2.values import (
    MonthDay,
    Period,
    StackTraceElement,
    Year,
    YearMonth,
)

IO_PACKAGE = "com.alibaba.com.caucho.hessian.io."
TIME_PACKAGE = IO_PACKAGE + "java8."

_BIG_DECIMAL = Definition("java.math.BigDecimal", ["value"])
_BIG_INTEGER = Definition("java.math.BigInteger", ["mag", "signum"])
_UUID = Definition("java.util.UUID", ["leastSigBits", "mostSigBits"])
_LOCALE = Definition(IO_PACKAGE + "LocaleHandle", ["value"])
_CALENDAR = Definition(IO_PACKAGE + "CalendarHandle", ["date", "type"])
_LOCAL_DATE = Definition(TIME_PACKAGE + "LocalDateHandle", ["day", "month", "year"])
_LOCAL_TIME = Definition(TIME_PACKAGE + "LocalTimeHandle", ["nano", "second", "minute", "hour"])
_LOCAL_DATE_TIME = Definition(TIME_PACKAGE + "LocalDateTimeHandle", ["time", "date"])
_INSTANT = Definition(TIME_PACKAGE + "InstantHandle", ["nanos", "seconds"])
_DURATION = Definition(TIME_PACKAGE + "DurationHandle", ["nanos", "seconds"])
_PERIOD = Definition(TIME_PACKAGE + "PeriodHandle", ["days", "months", "years"])
_YEAR = Definition(TIME_PACKAGE + "YearHandle", ["year"])
_YEAR_MONTH = Definition(TIME_PACKAGE + "YearMonthHandle", ["month", "year"])
_MONTH_DAY = Definition(TIME_PACKAGE + "MonthDayHandle", ["day", "month"])
_ZONE_OFFSET = Definition(TIME_PACKAGE + "ZoneOffsetHandle", ["seconds"])
_ZONE_ID = Definition(TIME_PACKAGE + "ZoneIdHandle", ["zoneId"])
_OFFSET_DATE_TIME = Definition(TIME_PACKAGE + "OffsetDateTimeHandle", ["offset", "dateTime"])
_OFFSET_TIME = Definition(TIME_PACKAGE + "OffsetTimeHandle", ["zoneOffset", "localTime"])
_ZONED_DATE_TIME = Definition(TIME_PACKAGE + "ZonedDateTimeHandle", ["offset", "dateTime", "zoneId"])
_STACK_TRACE_ELEMENT = Definition(
    "java.lang.StackTraceElement", ["lineNumber", "fileName", "methodName", "declaringClass"]
)


def _handle(output: Output, definition: Definition) -> None:
    # Java makes a new handle for each value, so nothing ever refers to one.
    output.count()
    output.begin_object(definition)


def _handle_of_ints(output: Output, definition: Definition, *values: int) -> None:
    _handle(output, definition)
    for value in values:
        output.out += encode_int(value)


def write_big_decimal(output: Output, value: Decimal | int) -> None:
    number = value if isinstance(value, Decimal) else Decimal(value)
    if not number.is_finite():
        raise Hessian2Error(f"{number} is no java.math.BigDecimal, which is always a finite number.")
    if output.refer(value):
        return
    output.begin_object(_BIG_DECIMAL)
    output.out += encode_string(str(number))


def write_big_integer(output: Output, value: int) -> None:
    if output.refer(value):
        return
    output.begin_object(_BIG_INTEGER)
    magnitude = abs(value)
    words = (magnitude.bit_length() + 31) // 32
    output.count()
    output.begin_list(words, "[int")
    for word in struct.unpack(f">{words}i", magnitude.to_bytes(words * 4, "big")):
        output.out += encode_int(word)
    output.out += encode_int((value > 0) - (value < 0))


def write_any_int(output: Output, value: int) -> None:
    """Python's int: an int where it fits, else a long, else a BigInteger."""
    if -0x80000000 <= value < 0x80000000:
        output.out += encode_int(value)
    elif -0x8000000000000000 <= value < 0x8000000000000000:
        output.out += encode_long(value)
    else:
        write_big_integer(output, value)


def write_uuid(output: Output, value: UUID) -> None:
    if output.refer(value):
        return
    most, least = struct.unpack(">qq", value.bytes)
    output.begin_object(_UUID)
    output.out += encode_long(least)
    output.out += encode_long(most)


def write_locale(output: Output, value: str) -> None:
    _handle(output, _LOCALE)
    output.out += encode_string(value)


def write_calendar(output: Output, value: datetime) -> None:
    _handle(output, _CALENDAR)
    write_millis(output, millis_of(value))
    output.out += b"N"


def write_date(output: Output, value: date) -> None:
    _handle_of_ints(output, _LOCAL_DATE, value.day, value.month, value.year)


def write_time(output: Output, value: time) -> None:
    if value.tzinfo is not None:
        offset = value.utcoffset()
        if offset is None:
            raise Hessian2Error(
                f"{value!r} has a zone but no offset of its own, so it is no java.time.OffsetTime."
            )
        _handle(output, _OFFSET_TIME)
        _handle_of_ints(output, _ZONE_OFFSET, round(offset.total_seconds()))
    _handle_of_ints(output, _LOCAL_TIME, value.microsecond * 1000, value.second, value.minute, value.hour)


def write_local_datetime(output: Output, value: datetime) -> None:
    _handle(output, _LOCAL_DATE_TIME)
    write_time(output, value.time())
    write_date(output, value.date())


def write_datetime(output: Output, value: datetime) -> None:
    """Python's datetime: a java.util.Date when it has a time zone, else a java.time.LocalDateTime."""
    if value.tzinfo is None:
        write_local_datetime(output, value)
    else:
        write_millis(output, (value - EPOCH) // timedelta(milliseconds=1))


def write_java_date(output: Output, value: datetime) -> None:
    write_millis(output, millis_of(value))


def write_instant(output: Output, value: datetime) -> None:
    millis_of(value)  # refuses one without a zone
    seconds, rest = divmod(value - EPOCH, timedelta(seconds=1))
    _handle(output, _INSTANT)
    output.out += encode_int(rest.microseconds * 1000)
    output.out += encode_long(seconds)


def write_duration(output: Output, value: timedelta) -> None:
    seconds, rest = divmod(value, timedelta(seconds=1))
    _handle(output, _DURATION)
    output.out += encode_int(rest.microseconds * 1000)
    output.out += encode_long(seconds)


def write_offset_datetime(output: Output, value: datetime) -> None:
    _handle(output, _OFFSET_DATE_TIME)
    _handle_of_ints(output, _ZONE_OFFSET, _offset_seconds(value))
    write_local_datetime(output, value.replace(tzinfo=None))


def write_zoned_datetime(output: Output, value: datetime) -> None:
    _handle(output, _ZONED_DATE_TIME)
    _handle_of_ints(output, _ZONE_OFFSET, _offset_seconds(value))
    write_local_datetime(output, value.replace(tzinfo=None))
    output.out += encode_string(zone_id(value))


def _offset_seconds(value: datetime) -> int:
    offset = value.utcoffset()
    if offset is None:
        raise Hessian2Error(f"{value} has no time zone: give it a tzinfo, or send a LocalDateTime.")
    return round(offset.total_seconds())


def zone_id(value: datetime) -> str:
    """Java's name of the zone of `value`: the region, or the offset when there is none."""
    if isinstance(value.tzinfo, zoneinfo.ZoneInfo) and value.tzinfo.key:
        return value.tzinfo.key
    seconds = _offset_seconds(value)
    if seconds == 0:
        return "Z"
    sign = "+" if seconds > 0 else "-"
    hours, rest = divmod(abs(seconds), 3600)
    text = f"{sign}{hours:02}:{rest // 60:02}"
    return text + f":{rest % 60:02}" if rest % 60 else text


def write_period(output: Output, value: Period) -> None:
    _handle_of_ints(output, _PERIOD, value.days, value.months, value.years)


def write_year(output: Output, value: Year) -> None:
    _handle_of_ints(output, _YEAR, value.year)


def write_year_month(output: Output, value: YearMonth) -> None:
    _handle_of_ints(output, _YEAR_MONTH, value.month, value.year)


def write_month_day(output: Output, value: MonthDay) -> None:
    _handle_of_ints(output, _MONTH_DAY, value.day, value.month)


def write_zone_id(output: Output, value: str) -> None:
    _handle(output, _ZONE_ID)
    output.out += encode_string(value)


def write_stack_trace_element(output: Output, value: StackTraceElement) -> None:
    output.count()
    output.begin_object(_STACK_TRACE_ELEMENT)
    output.out += encode_int(value.line_number)
    output.out += b"N" if value.file_name is None else encode_string(value.file_name)
    output.out += encode_string(value.method_name)
    output.out += encode_string(value.declaring_class)


def sql_writer(class_name: str) -> Callable[[Output, datetime], None]:
    definition = Definition(class_name, ["value"])

    def write(output: Output, value: datetime) -> None:
        if output.refer(value):
            return
        output.begin_object(definition)
        write_millis(output, millis_of(value))

    return write


def write_short(output: Output, value: int) -> None:
    _write_ranged(output, value, 0x8000, "short")


def write_byte(output: Output, value: int) -> None:
    _write_ranged(output, value, 0x80, "byte")


def _write_ranged(output: Output, value: int, limit: int, name: str) -> None:
    if not -limit <= value < limit:
        raise Hessian2Error(f"{value} does not fit a Java {name}.")
    output.out += encode_int(value)


def write_float(output: Output, value: float) -> None:
    try:
        write_double(output, struct.unpack(">f", struct.pack(">f", value))[0])
    except OverflowError:
        raise Hessian2Error(f"{value} does not fit a Java float.") from None


def write_as_double(output: Output, value: float) -> None:
    """Where a double is declared, an int is one too."""
    write_double(output, float(value))


def write_char(output: Output, value: str) -> None:
    if len(value) != 1 or value > "\uffff":
        raise Hessian2Error(f"{value!r} is no Java char, which is a single character up to U+FFFF.")
    output.out += encode_string(value)


# Java type names a value can be given, each with its writer; collections and arrays are in `hints`.
JAVA_WRITERS: dict[str, Callable[[Output, Any], None]] = {
    "boolean": write_bool,
    "java.lang.Boolean": write_bool,
    "byte": write_byte,
    "java.lang.Byte": write_byte,
    "short": write_short,
    "java.lang.Short": write_short,
    "int": write_int,
    "java.lang.Integer": write_int,
    "long": write_long,
    "java.lang.Long": write_long,
    "float": write_float,
    "java.lang.Float": write_float,
    "double": write_as_double,
    "java.lang.Double": write_as_double,
    "char": write_char,
    "java.lang.Character": write_char,
    "void": write_none,
    "string": write_str,
    "java.lang.String": write_str,
    "date": write_java_date,
    "java.util.Date": write_java_date,
    "java.util.Calendar": write_calendar,
    "java.util.GregorianCalendar": write_calendar,
    "java.util.Locale": write_locale,
    "java.util.UUID": write_uuid,
    "java.math.BigDecimal": write_big_decimal,
    "java.math.BigInteger": write_big_integer,
    "java.sql.Date": sql_writer("java.sql.Date"),
    "java.sql.Time": sql_writer("java.sql.Time"),
    "java.sql.Timestamp": sql_writer("java.sql.Timestamp"),
    "java.time.Duration": write_duration,
    "java.time.Instant": write_instant,
    "java.time.LocalDate": write_date,
    "java.time.LocalDateTime": write_local_datetime,
    "java.time.LocalTime": write_time,
    "java.time.MonthDay": write_month_day,
    "java.time.OffsetDateTime": write_offset_datetime,
    "java.time.OffsetTime": write_time,
    "java.time.Period": write_period,
    "java.time.Year": write_year,
    "java.time.YearMonth": write_year_month,
    "java.time.ZoneId": write_zone_id,
    "java.time.ZonedDateTime": write_zoned_datetime,
}
