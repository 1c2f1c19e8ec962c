"""Builders of Java's own classes: numbers, dates and times, UUIDs, locales, from the fields that were read.

The counterpart of `java_writers`. Python keeps microseconds, so the last three digits of Java's nanoseconds go.
"""

from __future__ import annotations

import struct
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.java_writers import IO_PACKAGE, TIME_PACKAGE
from headrace.services.hessian2.output import EPOCH
from headrace.services.hessian2.values import Locale, MonthDay, Period, StackTraceElement, Year, YearMonth

Builder = Callable[[Mapping[str, Any]], object]


def _build_big_decimal(fields: Mapping[str, Any]) -> Decimal:
    try:
        number = Decimal(fields["value"])
    except InvalidOperation:
        raise Hessian2Error("A java.math.BigDecimal holds a text that is no number.") from None
    if not number.is_finite():
        raise Hessian2Error("A java.math.BigDecimal holds a number that is not finite.")
    return number


def _build_big_integer(fields: Mapping[str, Any]) -> int:
    words = fields["mag"]
    magnitude = int.from_bytes(struct.pack(f">{len(words)}i", *words), "big")
    return -magnitude if fields["signum"] < 0 else magnitude


def _build_uuid(fields: Mapping[str, Any]) -> UUID:
    return UUID(bytes=struct.pack(">qq", fields["mostSigBits"], fields["leastSigBits"]))


def _build_locale(fields: Mapping[str, Any]) -> Locale | None:
    return None if fields["value"] is None else Locale(fields["value"])


def _build_local_date(fields: Mapping[str, Any]) -> date:
    return date(fields["year"], fields["month"], fields["day"])


def _build_local_time(fields: Mapping[str, Any]) -> time:
    return time(fields["hour"], fields["minute"], fields["second"], fields["nano"] // 1000)


def _build_local_datetime(fields: Mapping[str, Any]) -> datetime:
    return datetime.combine(fields["date"], fields["time"])


def _build_instant(fields: Mapping[str, Any]) -> datetime:
    return EPOCH + timedelta(seconds=fields["seconds"], microseconds=fields["nanos"] // 1000)


def _build_duration(fields: Mapping[str, Any]) -> timedelta:
    return timedelta(seconds=fields["seconds"], microseconds=fields["nanos"] // 1000)


def _build_zone_offset(fields: Mapping[str, Any]) -> timezone:
    return timezone(timedelta(seconds=fields["seconds"])) if fields["seconds"] else UTC


def _build_offset_datetime(fields: Mapping[str, Any]) -> datetime:
    value: datetime = fields["dateTime"]
    return value.replace(tzinfo=_tzinfo(fields["offset"]))


def _build_offset_time(fields: Mapping[str, Any]) -> time:
    value: time = fields["localTime"]
    return value.replace(tzinfo=_tzinfo(fields["zoneOffset"]))


def _build_zoned_datetime(fields: Mapping[str, Any]) -> datetime:
    local: datetime = fields["dateTime"]
    fixed = _tzinfo(fields["offset"])
    try:
        zone: tzinfo = zoneinfo.ZoneInfo(fields["zoneId"])
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return local.replace(tzinfo=fixed)
    # Where clocks go back an hour happens twice; the offset tells which one is meant.
    for fold in (0, 1):
        value = local.replace(tzinfo=zone, fold=fold)
        if value.utcoffset() == fixed.utcoffset(None):
            return value
    return local.replace(tzinfo=fixed)


def _tzinfo(value: object) -> timezone:
    if not isinstance(value, timezone):
        raise Hessian2Error("A java.time value has no zone offset.")
    return value


def _build_stack_trace_element(fields: Mapping[str, Any]) -> StackTraceElement:
    return StackTraceElement(
        fields["declaringClass"], fields["methodName"], fields.get("fileName"), fields["lineNumber"]
    )


def _field(name: str) -> Builder:
    return lambda fields: fields[name]


def _enum_set(fields: Mapping[str, Any]) -> set[object]:
    return set(fields["objects"])


BUILDERS: dict[str, Builder] = {
    "java.math.BigDecimal": _build_big_decimal,
    "java.math.BigInteger": _build_big_integer,
    "java.util.UUID": _build_uuid,
    "java.sql.Date": _field("value"),
    "java.sql.Time": _field("value"),
    "java.sql.Timestamp": _field("value"),
    "java.lang.StackTraceElement": _build_stack_trace_element,
    IO_PACKAGE + "LocaleHandle": _build_locale,
    IO_PACKAGE + "CalendarHandle": _field("date"),
    IO_PACKAGE + "EnumSetHandler": _enum_set,
    TIME_PACKAGE + "LocalDateHandle": _build_local_date,
    TIME_PACKAGE + "LocalTimeHandle": _build_local_time,
    TIME_PACKAGE + "LocalDateTimeHandle": _build_local_datetime,
    TIME_PACKAGE + "InstantHandle": _build_instant,
    TIME_PACKAGE + "DurationHandle": _build_duration,
    TIME_PACKAGE + "PeriodHandle": lambda fields: Period(fields["years"], fields["months"], fields["days"]),
    TIME_PACKAGE + "YearHandle": lambda fields: Year(fields["year"]),
    TIME_PACKAGE + "YearMonthHandle": lambda fields: YearMonth(fields["year"], fields["month"]),
    TIME_PACKAGE + "MonthDayHandle": lambda fields: MonthDay(fields["month"], fields["day"]),
    TIME_PACKAGE + "ZoneOffsetHandle": _build_zone_offset,
    TIME_PACKAGE + "ZoneIdHandle": _field("zoneId"),
    TIME_PACKAGE + "OffsetDateTimeHandle": _build_offset_datetime,
    TIME_PACKAGE + "OffsetTimeHandle": _build_offset_time,
    TIME_PACKAGE + "ZonedDateTimeHandle": _build_zoned_datetime,
}
