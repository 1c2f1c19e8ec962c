"""`headrace backlog advise` as a user runs it."""

from __future__ import annotations

import pytest


@pytest.fixture
def group(headrace, topic, name):
    """Has read two of five records and left."""
    headrace("produce", topic, stdin="a\nb\nc\nd\ne\n")
    headrace("consume", topic, "--group", name, "--from-beginning", "--max", 2)
    return name


def test_advice_comes_with_arithmetic_and_a_command(headrace, group):
    ran = headrace("backlog", "advise", group)
    assert ran.code == 0
    head, _, sentence, arithmetic, command = ran.lines
    assert head.startswith(f"Group {group} is gone: 3 unread in 1 partition, the oldest ")
    assert sentence == f"1. Start the consumers of {group}: it has no members."
    assert arithmetic == "   3 unread, and nobody reads them."
    assert command.startswith(f"   → start your consumer with group.id={group}")
    document = headrace("backlog", "advise", group, "--json").json
    assert (document["state"], document["records"]) == ("gone", 3)
    assert [each["kind"] for each in document["advice"]] == ["no-members"]


def test_a_group_that_is_well_needs_nothing(headrace, group, topic):
    headrace("groups", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute")
    ran = headrace("backlog", "advise", group)
    assert ran.lines[-1] == "Nothing is unread, so nothing has to be done."


def test_only_a_topic_may_be_asked_about(headrace, group, topic):
    assert headrace("backlog", "advise", group, "--topic", topic, "--json").json["records"] == 3
    other = f"{topic}-other"
    headrace("topics", "create", other)
    ran = headrace("backlog", "advise", group, "--topic", other)
    assert (ran.code, "nothing to measure" in ran.err) == (1, True)
    headrace("topics", "delete", other)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no group 'nowhere'"),
        (["nowhere", "--window", "0s"], "take durations above 0"),
        (["nowhere", "--within", "soon"], "'soon' is no duration"),
    ],
)
def test_bad_input_gets_one_sentence(headrace, arguments, sentence):
    ran = headrace("backlog", "advise", *arguments)
    assert ran.code in (1, 2)
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1
