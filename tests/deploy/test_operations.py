"""docs/operations.md is the runbook of the rules that Headrace ships: a section for each, and only commands that exist."""

import argparse
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from headrace.cli.kafka import run as run_kafka_tool
from headrace.cli.tree import app
from headrace.watch.doctor.catalogue import NAMES

ROOT = Path(__file__).parents[2]
RUNBOOK = (ROOT / "docs/operations.md").read_text()
SECTIONS = re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", RUNBOOK, flags=re.MULTILINE)
PROMETHEUS = (ROOT / "deploy/prometheus/headrace-alerts.yml").read_text()
ALERTS = re.findall(r"- alert: (\w+)\n((?:(?!\s+- alert).*\n)*)", PROMETHEUS)
RULES = tomllib.loads((ROOT / "deploy/alerts.toml").read_text())["rule"]
COMMANDS = sorted(set(re.findall(r"`(headrace [^`…]+)`", RUNBOOK)))


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_rule_has_its_section_and_every_section_its_rule():
    names = [name for name, _ in ALERTS] + [rule["name"] for rule in RULES]
    assert [heading for heading, _ in SECTIONS] == names


def test_every_section_says_how_to_look_and_when_to_wake_somebody():
    assert [
        name for name, text in SECTIONS if "**Look**" not in text or "**Wake somebody**" not in text
    ] == []


def test_the_alerts_of_prometheus_name_their_section():
    for name, text in ALERTS:
        assert f'runbook: "docs/operations.md#{anchor(name)}"' in text


def test_links_lead_to_pages_and_headings():
    links = re.findall(r"\]\(([\w-]*\.md)?(?:#([\w-]+))?\)", RUNBOOK)
    assert len(links) > 20
    for page, wanted in links:
        headings = re.findall(
            r"^#+ (.+)$", (ROOT / "docs" / (page or "operations.md")).read_text(), re.MULTILINE
        )
        assert not wanted or wanted in map(anchor, headings), (page, wanted)


def parse(arguments):
    """As the command line does, without running the command."""
    command, context = get_command(app), None
    while True:
        context = command.make_context("headrace", arguments, parent=context)
        if not hasattr(command, "resolve_command"):
            return
        _, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])


def test_the_named_checks_of_the_doctor_exist():
    named = {name for each in re.findall(r"--only ([\w,-]+)", RUNBOOK) for name in each.split(",")}
    assert named
    assert named <= set(NAMES)


class Parsed(Exception):
    """A Kafka tool has read its flags and would begin its work."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_printed_command_parses(line, monkeypatch):
    arguments = shlex.split(line.partition(" > ")[0])[1:]
    if arguments[0] != "kafka":
        parse(arguments)
        return
    understood = argparse.ArgumentParser.parse_args

    def stop(self, *given, **named):
        understood(self, *given, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(Parsed):
        run_kafka_tool(arguments[1:])
