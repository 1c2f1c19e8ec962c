"""A call compared with a description as Java's providers publish it."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.services.definition import CallMistake, ServiceDefinition

TEXT = {"type": "java.lang.String"}
DESCRIBED: dict[str, Any] = {
    "canonicalName": "com.acme.Orders",
    "methods": [
        {"name": "place", "parameterTypes": ["com.acme.Order"], "returnType": "void"},
        {"name": "all", "parameterTypes": ["java.util.List<com.acme.Order>"], "returnType": "void"},
        {"name": "by", "parameterTypes": ["java.util.Map<java.lang.String, com.acme.Order>"]},
        {"name": "find", "parameterTypes": ["java.lang.String"]},
        {"name": "find", "parameterTypes": ["long"]},
        {"name": "put", "parameterTypes": ["int[]", "double", "java.util.Date"]},
        {"name": "either", "parameterTypes": ["int"]},
        {"name": "either", "parameterTypes": ["long"]},
    ],
    "types": [
        {"type": "java.lang.String", "properties": {"value": {"type": "byte[]"}}},  # Java's own insides
        {"type": "com.acme.Colour", "enum": ["RED", "BLUE"]},
        {
            "type": "com.acme.Order",
            "properties": {
                "article": TEXT,
                "colour": {"type": "com.acme.Colour"},
                "tags": {"type": "java.util.Set"},
            },
        },
    ],
}
GOOD: dict[str, Any] = {"class": "com.acme.Order", "article": "tea", "colour": "RED", "tags": ["hot"]}


@pytest.mark.parametrize(
    ("method", "arguments", "types"),
    [
        ("place", [GOOD], ["com.acme.Order"]),
        ("place", [None], ["com.acme.Order"]),
        ("all", [[GOOD, {}]], ["java.util.List"]),
        ("by", [{"a": GOOD}], ["java.util.Map"]),
        ("find", ["x"], ["java.lang.String"]),
        ("find", [5], ["long"]),
        ("put", [[1, 2], 1, "2024-01-02"], ["int[]", "double", "java.util.Date"]),
    ],
)
def test_a_fitting_call_is_told_the_types_to_send(
    method: str, arguments: list[Any], types: list[str]
) -> None:
    assert ServiceDefinition(DESCRIBED).match(method, arguments).raw_types == types


@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("plase", [GOOD], "com.acme.Orders has no method 'plase'. Did you mean 'place'?"),
        ("place", [], "0 arguments were given, but the method is place(com.acme.Order)."),
        ("place", [{"artikel": "tea"}], "com.acme.Order has no field 'artikel'. Did you mean 'article'?"),
        ("place", [{"article": 5}], "article: a text is expected for java.lang.String, not a whole number."),
        ("place", [{"colour": "GREEN"}], "colour: com.acme.Colour has no member 'GREEN'. It has RED, BLUE."),
        ("place", ["tea"], "an object is expected for com.acme.Order, not a text."),
        ("all", [[{"price": 5}]], "com.acme.Order has no field 'price'."),
        ("by", [{"a": {"price": 5}}], "com.acme.Order has no field 'price'."),
        ("find", [True], "a text is expected for java.lang.String, not true or false."),
        ("put", [[1.5], 1, None], "a whole number is expected for int, not a number."),
        ("put", [[1], None, None], "null is not possible for a primitive type."),
        ("either", [5], "either is overloaded: name the types of one of either(int) or either(long)."),
    ],
)
def test_a_call_that_does_not_fit_is_one_sentence(method: str, arguments: list[Any], said: str) -> None:
    with pytest.raises(CallMistake) as raised:
        ServiceDefinition(DESCRIBED).match(method, arguments)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_types_choose_among_overloaded_methods() -> None:
    definition = ServiceDefinition(DESCRIBED)
    assert definition.match("either", [5], ["int"]).raw_types == ["int"]
    with pytest.raises(CallMistake, match=r"there is either\(int\) or either\(long\)"):
        definition.match("either", [5], ["short"])


def test_only_python_providers_take_pythons_names_of_fields() -> None:
    described = {**DESCRIBED, "methods": [{"name": "put", "parameterTypes": ["com.acme.Line"]}]}
    described["types"] = [{"type": "com.acme.Line", "properties": {"orderId": {"type": "long"}}}]
    with pytest.raises(CallMistake, match="has no field 'order_id'"):
        ServiceDefinition(described).match("put", [{"order_id": 1}])
    described["parameters"] = {"headrace": "1.0"}
    assert ServiceDefinition(described).match("put", [{"order_id": 1}]).name == "put"


def test_a_description_may_name_the_types_of_fields_as_dubbo_3_does() -> None:
    described = {
        **DESCRIBED,
        "types": [
            {"type": "com.acme.Colour", "enums": ["RED", "BLUE"]},
            {
                "type": "com.acme.Order",
                "properties": {
                    "article": "java.lang.String",
                    "colour": "com.acme.Colour",
                    "tags": "java.util.Set<java.lang.String>",
                },
            },
        ],
    }
    definition = ServiceDefinition(described)
    assert definition.match("place", [GOOD]).name == "place"
    with pytest.raises(CallMistake, match=r"article: a text is expected for java\.lang\.String"):
        definition.match("place", [{"article": 5}])
    with pytest.raises(CallMistake, match=r"colour: com\.acme\.Colour has no member 'GREEN'"):
        definition.match("place", [{"colour": "GREEN"}])


NUMBERS: dict[str, Any] = {
    "canonicalName": "com.acme.Sums",
    "methods": [
        {"name": "whole", "parameterTypes": ["long"]},
        {"name": "fraction", "parameterTypes": ["java.lang.Double"]},
        {"name": "flag", "parameterTypes": ["boolean"]},
        {"name": "list", "parameterTypes": ["java.util.List<java.lang.Integer>"]},
        {"name": "text", "parameterTypes": ["java.lang.String"]},
        {"name": "text", "parameterTypes": ["long"]},
    ],
}


@pytest.mark.parametrize(
    ("method", "value", "types"),
    [
        ("whole", "5", ["long"]),
        ("whole", "-5", ["long"]),
        ("whole", 1.0, ["long"]),
        ("fraction", "1.5", ["java.lang.Double"]),
        ("flag", "true", ["boolean"]),
        ("flag", 1, ["boolean"]),
        ("list", ["1", 2.0], ["java.util.List"]),
        ("text", "5", ["java.lang.String"]),  # what fits as it is comes first
    ],
)
def test_what_java_converts_fits_a_java_provider(method: str, value: Any, types: list[str]) -> None:
    assert ServiceDefinition(NUMBERS).match(method, [value]).raw_types == types


@pytest.mark.parametrize(
    ("method", "value", "said"),
    [
        ("whole", "five", "a whole number is expected for long, not a text."),
        ("whole", 1.5, "a whole number is expected for long, not a number."),
        ("fraction", "1,5", "a number is expected for java.lang.Double, not a text."),
        ("flag", "yes", "true or false is expected for boolean, not a text."),
    ],
)
def test_what_java_cannot_convert_or_would_spoil_is_refused(method: str, value: Any, said: str) -> None:
    with pytest.raises(CallMistake, match=said):
        ServiceDefinition(NUMBERS).match(method, [value])


def test_a_python_provider_gets_numbers_as_numbers() -> None:
    described = {**NUMBERS, "parameters": {"headrace": "1.0"}}
    with pytest.raises(CallMistake, match="a whole number is expected for long, not a text"):
        ServiceDefinition(described).match("whole", ["5"])
