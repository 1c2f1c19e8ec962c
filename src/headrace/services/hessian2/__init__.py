"""Hessian 2 as Java's Dubbo 2.7 speaks it: Python values to bytes and back.

    encoder = Encoder()
    encoder.encode("2.0.2")
    encoder.encode({"path": "com.acme.Orders"})
    body = encoder.getvalue()

    decoder = Decoder(body)
    version, attachments = decoder.decode(), decoder.decode()

Classes are known by registration only (`@java_class("com.acme.Order")`); an object of any other class is read as a
`JavaObject`. What is wrong with bytes or values is a `Hessian2Error`.
"""

from headrace.services.hessian2.bean_writers import java_exception_name
from headrace.services.hessian2.brief import brief
from headrace.services.hessian2.classes import DEFAULT_CLASSES, JavaClass, JavaClasses, JavaField, java_class
from headrace.services.hessian2.convert import convert, converter_for
from headrace.services.hessian2.decoder import Decoder, decode
from headrace.services.hessian2.encoder import Encoder, encode
from headrace.services.hessian2.errors import Hessian2Error
from headrace.services.hessian2.hints import java_type_writer, writer_for
from headrace.services.hessian2.values import (
    Byte,
    Char,
    Float,
    Int,
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
)

__all__ = [
    "DEFAULT_CLASSES",
    "Byte",
    "Char",
    "Decoder",
    "Encoder",
    "Float",
    "Hessian2Error",
    "Int",
    "JavaClass",
    "JavaClasses",
    "JavaException",
    "JavaField",
    "JavaObject",
    "JavaType",
    "Locale",
    "Long",
    "MonthDay",
    "Period",
    "Short",
    "StackTraceElement",
    "Typed",
    "Year",
    "YearMonth",
    "brief",
    "convert",
    "converter_for",
    "decode",
    "encode",
    "java_class",
    "java_exception_name",
    "java_type_writer",
    "writer_for",
]
