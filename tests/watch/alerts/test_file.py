"""alerts.toml: what it takes, and every mistake at once with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.watch.alerts.conditions import KINDS, DeadLetters, LagStates
from headrace.watch.alerts.declared import LogReceiver, WebhookReceiver
from headrace.watch.alerts.file import Mistakes, load, read
from headrace.watch.alerts.values import Patterns


def mistakes(text: str) -> list[str]:
    with pytest.raises(Mistakes) as raised:
        read(text, "alerts.toml")
    return str(raised.value).splitlines()


def test_a_rule_needs_little() -> None:
    declaration = read('[[rule]]\nname = "stalled"\nkind = "lag-state"', "alerts.toml")
    rule, away = declaration.rules
    assert rule.condition == LagStates(groups=Patterns(), topics=Patterns(), states=("stalled", "gone"))
    assert (rule.wait, rule.severity, rule.receivers, rule.repeat) == (0, "warning", ("log",), 14400)
    assert declaration.receivers == {"log": LogReceiver("log")}
    assert (away.name, away.kind, away.wait, away.severity) == (
        "cluster-away",
        "cluster-away",
        60,
        "critical",
    )


def test_every_mistake_is_found_at_once_with_its_line() -> None:
    text = """\
[alerts]
intervall = "15s"
receivers = ["pagr"]

[[receiver]]
name = "pager"
kind = "webhook"
shape = "slak"

[[receiver]]
kind = "fax"

[[rule]]
name = "late"
kind = "lag-secnds"

[[rule]]
name = "behind"
kind = "lag-seconds"
above = 300
for = "soon"
receivers = ["pager", "pigeon"]

[[rule]]
name = "behind"
kind = "dead-letters"
grups = ["a"]
severity = "urgent"

[rules]
"""
    assert mistakes(text) == [
        "alerts.toml:2: intervall is not known here; did you mean 'interval'?",
        "alerts.toml:3: there is no receiver pagr; did you mean 'pager'?",
        "alerts.toml:5: receiver pager: url is missing",
        "alerts.toml:8: receiver pager: shape takes generic, slack or alertmanager, not 'slak'; did you mean 'slack'?",
        "alerts.toml:10: receiver 2: name is missing",
        "alerts.toml:11: receiver 2: kind takes log, webhook, command or topic, not 'fax'",
        "alerts.toml:15: rule late: kind takes "
        + ", ".join(list(KINDS)[:-1])
        + " or cluster-away, not 'lag-secnds'; did you mean 'lag-seconds'?",
        'alerts.toml:20: rule behind: above takes a duration in quotes, as in "300s"',
        "alerts.toml:21: rule behind: for takes a duration: 'soon' is no duration; write it as 90s, 1h30m or 7d, or as ISO 8601's P1DT2H",
        "alerts.toml:22: rule behind: there is no receiver pigeon; it takes pager, log",
        "alerts.toml:25: rule behind: another has this name already",
        "alerts.toml:27: rule behind: grups is not known here; it takes name, kind, for, severity, labels, runbook, receivers, repeat, "
        "topics, above, within",
        "alerts.toml:28: rule behind: severity takes info, warning or critical, not 'urgent'",
        "alerts.toml:30: rules is not known here; did you mean 'rule'?",
    ]


def test_names_are_given_once() -> None:
    rule = '[[rule]]\nname = "a"\nkind = "no-controller"\n'
    assert mistakes(rule + rule) == ["alerts.toml:5: rule a: another has this name already"]


def test_a_rule_is_a_table_in_a_list() -> None:
    assert mistakes('[rule]\nname = "a"') == [
        "alerts.toml:1: rule is a list of tables: write [[rule]] above each"
    ]


def test_toml_that_is_none_has_its_line() -> None:
    [found] = mistakes('[[rule]]\nname = "a\n')
    assert found.startswith("alerts.toml:2: it is not TOML:")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match=r"none\.toml:1: it cannot be read: No such file or directory"):
        load(tmp_path / "none.toml")


def test_secrets_are_references_and_never_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOOK", "https://hooks.example.com/T0/s3cret")
    (tmp_path / "secrets").write_text("key=hush\n")
    text = f"""
[[receiver]]
name = "chat"
kind = "webhook"
url = "${{env:HOOK}}"
secret = "${{file:{tmp_path}/secrets:key}}"
headers = {{ Authorization = "Bearer ${{env:HOOK}}" }}
"""
    declaration = read(text, "alerts.toml")
    chat = declaration.receivers["chat"]
    assert isinstance(chat, WebhookReceiver)
    assert (chat.url, chat.secret) == ("https://hooks.example.com/T0/s3cret", "hush")
    assert dict(chat.headers)["Authorization"].endswith("s3cret")
    assert "s3cret" not in repr(declaration)
    assert "hush" not in repr(declaration)
    monkeypatch.setenv("HOOK", "s3cret, but no URL")
    found = mistakes(text)
    assert "url takes a URL" in found[0]
    assert "s3cret" not in "".join(found)


def test_a_reference_that_leads_nowhere_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    text = '[[receiver]]\nname = "a"\nkind = "webhook"\nurl = "${env:NOWHERE}"'
    assert mistakes(text) == [
        "alerts.toml:4: receiver a: url: ${env:NOWHERE} cannot be resolved: the environment has no variable NOWHERE; "
        "set it where this program starts"
    ]


def test_patterns_leave_out_what_begins_with_an_exclamation_mark() -> None:
    rule = read('[[rule]]\nname = "a"\nkind = "dead-letters"\ntopics = ["*.dlq", "!test-*"]', "a").rules[0]
    assert isinstance(rule.condition, DeadLetters)
    matches = rule.condition.topics.matches
    assert (matches("orders.dlq"), matches("test-orders.dlq"), matches("orders")) == (True, False, False)
    assert Patterns(("!a",)).matches("b")


def test_alertmanager_is_told_every_minute_because_it_forgets() -> None:
    text = '[[receiver]]\nname = "am"\nkind = "webhook"\nurl = "http://am:9093"\nshape = "alertmanager"'
    declaration = read(text, "a")
    assert declaration.repeats(None) == {"am": 60}


def test_the_example_that_is_shipped_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Path(__file__).parents[3] / "deploy" / "alerts.toml"
    declaration = load(shipped)
    assert {rule.kind for rule in declaration.rules} >= set(KINDS) - {"lag-records", "lag-seconds"}
