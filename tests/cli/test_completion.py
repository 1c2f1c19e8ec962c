"""The shell completes commands, options, and the names of topics and groups."""

from __future__ import annotations

import pytest


@pytest.fixture
def complete(headrace):
    def run(line: str) -> list[str]:
        words = line.split(" ")
        ran = headrace(
            env={"_HEADRACE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        )
        assert ran.err == ""
        return ran.lines

    return run


def test_commands_and_options_are_completed(complete):
    assert complete("headrace to") == ["topics", "top"]
    assert complete("headrace topics de") == ["describe", "delete", "delete-records"]
    assert "--partitions" in complete("headrace topics create x --part")


def test_topics_are_completed_from_the_broker(complete, topic):
    assert complete(f"headrace topics describe {topic[:-1]}") == [topic]
    assert topic in complete("headrace consume ")


def test_groups_are_completed_from_the_broker(complete, headrace, topic, name):
    headrace("produce", topic, stdin="a\n")
    headrace("consume", topic, "--group", name, "--from-beginning", "--max", 1)
    assert complete(f"headrace groups describe {name[:-2]}") == [name]


def test_without_a_broker_nothing_is_offered_and_nothing_is_said(headrace):
    ran = headrace(
        env={
            "_HEADRACE_COMPLETE": "complete_bash",
            "COMP_WORDS": "headrace topics describe ",
            "COMP_CWORD": "3",
            "HEADRACE_BOOTSTRAP": "127.0.0.1:1",
        }
    )
    assert (ran.out.strip(), ran.err) == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell_is_printed(headrace, shell):
    assert "_HEADRACE_COMPLETE" in headrace(env={"_HEADRACE_COMPLETE": f"source_{shell}"}).out
