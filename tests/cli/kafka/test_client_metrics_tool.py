"""kafka-client-metrics.sh and kafka-configs.sh --entity-type client-metrics, with Kafka's flags and output."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def tool(headrace):
    return lambda *arguments: headrace("kafka", "client-metrics", *arguments)


def test_a_subscription_is_made_shown_listed_reset_and_deleted(tool, name):
    made = tool(
        "--alter",
        "--name",
        name,
        "--metrics",
        "org.apache.kafka.producer.,x",
        "--interval",
        60000,
        "--match",
        "client_id=a.*",
    )
    assert (made.code, made.out) == (0, f"Altered client metrics config for {name}.\n"), made.err
    assert name in tool("--list").lines
    assert tool("--describe", "--name", name).lines == [
        f"Client metrics configs for {name} are:",
        "  interval.ms=60000",
        "  match=client_id=a.*",
        "  metrics=org.apache.kafka.producer.,x",
    ]
    assert tool("--alter", "--name", name, "--match", "", "--interval=").code == 0
    shown = tool("--describe").lines
    start = shown.index(f"Client metrics configs for {name} are:")
    assert shown[start + 1 : start + 4] == [
        "  interval.ms=300000",
        "  match=",
        "  metrics=org.apache.kafka.producer.,x",
    ]
    assert tool("--delete", "--name", name).out == f"Deleted client metrics config for {name}.\n"
    assert name not in tool("--list").lines
    assert tool("--describe", "--name", name).out == (
        f"The client metrics resource '{name}' doesn't exist and doesn't have dynamic config.\n"
    )


def test_a_name_can_be_made_up(tool):
    made = tool("--alter", "--generate-name", "--metrics", "*")
    found = re.fullmatch(r"Altered client metrics config for ([\w-]{22})\.\n", made.out)
    assert found, made.err
    assert found[1] in tool("--list").lines


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Command must include exactly one action: --alter, --delete, --describe, --list."),
        (("--list", "--describe"), "Command must include exactly one action"),
        (("--alter", "--metrics", "x"), "One of --name or --generate-name must be specified with --alter."),
        (("--alter", "--name", "x", "--generate-name", "--metrics", "x"), "One of --name or --generate-name must be specified with --alter."),
        (("--alter", "--name", "x"), "One of --interval, --match or --metrics must be specified with --alter."),
        (("--delete",), "A client metrics resource name must be specified with --delete."),
        (("--alter", "--name", "x", "--interval", "1"), "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        (("--alter", "--name", "x", "--match", "shoes=1"), "Illegal client matching pattern: shoes=1"),
    ],
)  # fmt: skip
def test_a_bad_line_is_answered_with_one_sentence(tool, arguments, sentence):
    ran = tool(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


def test_kafka_configs_changes_and_shows_them_too(headrace, name):
    configs = lambda *arguments: headrace("kafka", "configs", *arguments)  # noqa: E731
    entity = ("--entity-type", "client-metrics", "--entity-name", name)
    done = configs("--alter", *entity, "--add-config", "metrics=[a.,b.],interval.ms=5000")
    assert done.out == f"Completed updating config for client-metric {name}.\n", done.err
    head, *settings = configs("--describe", "--client-metrics", name).lines
    assert head == f"Dynamic configs for client-metric {name} are:"
    assert settings == [
        "  interval.ms=5000 sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=5000}",
        "  metrics=a.,b. sensitive=false synonyms={DYNAMIC_CLIENT_METRICS_CONFIG:metrics=a.,b.}",
    ]
    assert configs("--alter", *entity, "--delete-config", "metrics,interval.ms").code == 0
    assert name not in headrace("kafka", "client-metrics", "--list").lines


def test_the_command_of_headrace_changes_and_shows_them_too(headrace, name):
    done = headrace("configs", "alter", "client-metrics", name, "--set", "metrics=*")
    assert done.out == f"Altered metrics of client-metrics {name}.\n", done.err
    shown = headrace("configs", "describe", "client-metrics", name, "--json").json
    assert [(each["name"], each["value"]) for each in shown] == [("metrics", "*")]
    wrong = headrace("configs", "alter", "client-metrics", name, "--set", "metric=*")
    assert "Unknown client-metrics setting 'metric'. Did you mean 'metrics'?" in wrong.err
