"""`headrace alerts`: check, test, list, silence, history, against a real broker and a running alerter."""

from __future__ import annotations

import json

import pytest

from tests.waiting import until

RULES = """
[alerts]
interval = "0.2s"
failover = "6s"

[[receiver]]
name = "file"
kind = "command"
command = ["sh", "-c", 'line=$(cat); printf "%s\\n" "$line" >> {out}']

[[receiver]]
name = "broken"
kind = "command"
command = ["/nowhere/pager"]

[[rule]]
name = "letters"
kind = "dead-letters"
topics = ["{topic}"]
within = "1h"
severity = "critical"
receivers = ["file"]
"""


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def config(tmp_path, out, name):
    path = tmp_path / "alerts.toml"
    path.write_text(RULES.format(out=out, topic=f"{name}.dlq"))
    return path


def told(out):
    return [json.loads(line)["status"] for line in out.read_text().splitlines()] if out.exists() else []


def test_checking_shows_every_mistake_or_what_each_rule_finds(headrace, config, name):
    headrace("topics", "create", f"{name}.dlq")
    headrace("produce", f"{name}.dlq", stdin="a\n")
    ran = headrace("alerts", "check", "-c", config)
    assert ran.code == 0
    assert ran.lines[0].split() == ["RULE", "NOW", "LABELS", "SUMMARY"]
    assert ran.lines[1].split()[:3] == ["letters", "active", f"topic={name}.dlq"]
    [finding] = headrace("alerts", "check", "-c", config, "--json").json["rules"]["letters"]
    assert (finding["now"], finding["value"]) == ("active", 1)
    assert "2 rules, 2 receivers, no mistakes" in headrace("alerts", "check", "-c", config, "--offline").out
    config.write_text(config.read_text().replace("topics", "topcs").replace("critical", "critcal"))
    ran = headrace("alerts", "check", "-c", config)
    assert ran.code == 1
    assert f"{config}:19: rule letters: topcs is not known here; did you mean 'topics'?" in ran.err
    assert f"{config}:21: rule letters: severity takes info, warning or critical" in ran.err


def test_a_test_notice_goes_where_it_is_sent(headrace, config, out):
    ran = headrace("alerts", "test", "letters", "-c", config)
    assert (ran.code, ran.out) == (0, "file: delivered\n")
    [notice] = [json.loads(line) for line in out.read_text().splitlines()]
    assert (notice["test"], notice["rule"], notice["severity"]) == (True, "letters", "critical")
    ran = headrace("alerts", "test", "--receiver", "broken", "-c", config)
    assert (ran.code, ran.out) == (
        1,
        "broken: not delivered: it cannot be started: No such file or directory\n",
    )
    ran = headrace("alerts", "test", "-c", config, "--json")
    assert [each["delivered"] for each in ran.json] == [True, False]


def remembered(headrace):
    return [each["what"] for each in headrace("alerts", "history", "--rule", "letters", "--json").json]


def test_what_fires_is_listed_silenced_and_remembered(headrace, start, config, out, name):
    assert "No alerter has run here" in headrace("alerts", "list").err
    headrace("topics", "create", f"{name}.dlq")
    headrace("produce", f"{name}.dlq", stdin="a\n")
    ran = headrace(
        "alerts", "silence", "letters", "--for", "1h", "--author", "ann", "--comment", "known", "--json"
    )
    assert (ran.code, ran.json["author"], ran.json["active"]) == (0, "ann", True)
    silence = ran.json["id"]
    runner = start("alerts", "run", "-c", config)
    assert "Judging 2 rules every 0.2 s" in runner.stderr.readline()
    until(lambda: headrace("alerts", "list", "--json").json["alerts"], "the alert")
    [alert] = headrace("alerts", "list", "--json").json["alerts"]
    assert (alert["rule"], alert["state"], alert["silenced"]["comment"]) == ("letters", "firing", "known")
    assert told(out) == []
    assert "more by ann" in headrace("alerts", "list").out
    assert silence in headrace("alerts", "silences").out
    assert headrace("alerts", "unsilence", silence).out == "Ended 1 silence.\n"
    until(lambda: told(out) == ["firing"], "the notice")
    # A receiver has its notice before the alerter has written that down.
    until(lambda: remembered(headrace) == ["fired", "delivered"], "the delivery in the history")
    headrace("topics", "delete", f"{name}.dlq")
    until(lambda: told(out) == ["firing", "resolved"], "the end")
    until(lambda: headrace("alerts", "list", "--all", "--json").json["alerts"] == [], "the end of the alert")
    until(lambda: len(remembered(headrace)) == 4, "the last delivery in the history")
    assert remembered(headrace) == ["fired", "delivered", "resolved", "delivered"]
    assert "RECEIVER" in headrace("alerts", "history").lines[0]
    listed = headrace("alerts", "list", "--json").json
    assert (listed["watched"], listed["acting"]["delivered"]) == (True, 2)
    runner.terminate()
    runner.wait(60)
    assert not headrace("alerts", "list", "--json").json["watched"]
    assert "No alerter runs now, so what follows may be old" in headrace("alerts", "list").err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check", "-c", "/nowhere.toml"], "/nowhere.toml:1: it cannot be read: No such file"),
        (["test", "lettrs"], "has no rule 'lettrs'. Did you mean 'letters'?"),
        (["test", "--receiver", "fil"], "has no receiver 'fil'. Did you mean 'file'?"),
        (["silence", "--for", "1h", "--comment", "x"], "Say what to silence"),
        (["silence", "letters", "--comment", "x"], "A silence needs an end"),
        (["silence", "letters", "--for", "1h"], "A silence needs a reason"),
        (["silence", "letters", "--until", "2020-01-01", "--comment", "x"], "passed already"),
        (["silence", "--label", "group", "--for", "1h", "--comment", "x"], "--label takes NAME=VALUE"),
        (["unsilence", "nobody"], "There is no silence 'nobody'"),
        (["unsilence"], "Name the silences to end"),
        (["history", "--last", "soon"], "'soon' is no duration"),
    ],
)
def test_bad_input_gets_one_sentence(headrace, config, arguments, sentence):
    extra = ["-c", config] if arguments[0] == "test" else []
    ran = headrace("alerts", *arguments, *extra)
    assert ran.code in (1, 2)
    assert sentence in ran.err
