from __future__ import annotations

import pytest


def level(headrace):
    found = headrace("features", "describe", "--json").json
    return {each["feature"]: each["level"] for each in found}["transaction.version"]


def test_levels_are_shown_and_set_up_and_down(headrace):
    assert headrace("features", "describe").lines[0].split() == ["FEATURE", "LEVEL", "LOWEST", "HIGHEST"]
    assert (
        headrace("features", "set", "transaction.version=0", "--dry-run").out
        == "transaction.version can be 0.\n"
    )
    assert level(headrace) == 2
    assert headrace("features", "set", "transaction.version=0").out == "transaction.version is 0.\n"
    assert level(headrace) == 0
    levels = headrace("features", "set", "transaction.version=2", "--json").json
    assert levels == {"dry_run": False, "levels": {"transaction.version": 2}}
    assert level(headrace) == 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("transaction.version", "A feature level looks like transaction.version=2"),
        ("transaktion.version=1", "Did you mean 'transaction.version'?"),
        ("transaction.version=9", "The brokers support the levels 0 to 2."),
    ],
)
def test_a_mistake_gets_one_sentence(headrace, given, sentence):
    ran = headrace("features", "set", given)
    assert (ran.code, ran.out) == (1, "")
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_kafkas_tool_describes_and_switches(headrace):
    def tool(*arguments):
        return headrace("kafka", "features", *arguments)

    lines = tool("describe").lines
    assert [line.split("\t")[0] for line in lines] == [
        "Feature: delegation.token.version",
        "Feature: group.version",
        "Feature: mirror.version",
        "Feature: share.version",
        "Feature: transaction.version",
    ]
    assert (
        tool("downgrade", "--feature", "transaction.version=1").out
        == "transaction.version was downgraded to 1.\n"
    )
    refused = tool("upgrade", "--feature", "transaction.version=7")
    assert refused.code == 1
    assert refused.out.startswith("Could not upgrade transaction.version to 7. Invalid update version 7")
    assert (
        tool("upgrade", "--feature", "transaction.version=2").out
        == "transaction.version was upgraded to 2.\n"
    )
    assert tool("upgrade").code == 1
