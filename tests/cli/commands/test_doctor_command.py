"""`headrace doctor` as a user runs it, against a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.testing.zookeeper import free_port
from headrace.watch.doctor.catalogue import CHECKS

QUIET = "disk-space,disk-forecast,interpreter"
"""Those that depend on the machine that the tests run on."""


def test_a_healthy_broker_has_at_most_notes(headrace, topic):
    ran = headrace("doctor", "--skip", QUIET, "--window", "1s")
    assert ran.code == 0, ran.out
    assert f"{len(CHECKS) - 3 - 2} checks found nothing; " in ran.lines[-1]
    assert "warning " not in ran.out


def test_problems_come_with_their_remedies_and_decide_the_exit_status(headrace, name):
    headrace("topics", "create", name, "--config", "retention.bytes=1000")
    ran = headrace("doctor", "--only", "conflicting-settings")
    assert ran.code == 1
    assert ran.lines[0].startswith(
        f"warning  In topic {name}: retention.bytes (1,000) is less than one segment"
    )
    assert ran.lines[0].endswith("[conflicting-settings]")
    assert ran.lines[1] == "         → Lower segment.bytes to a fourth of retention.bytes or less."
    assert ran.lines[-1] == "0 checks found nothing; 1 problem found by 1."
    document = headrace("doctor", "--only", "conflicting-settings,uvloop", "--json").json
    assert (document["worst"], document["brokers"]) == ("warning", [1])
    found = {each["check"]: each for each in document["checks"]}
    assert found["uvloop"]["outcome"] == "fine"
    [finding] = found["conflicting-settings"]["findings"]
    assert (finding["severity"], finding["subjects"]) == ("warning", [f"topic {name}"])
    headrace("topics", "delete", name)


def test_errors_have_a_status_of_their_own(headrace, name):
    headrace("topics", "create", name, "--config", "min.insync.replicas=2")
    assert headrace("doctor", "--only", "min-insync-replicas").code == 4
    headrace("topics", "delete", name)


def test_no_broker_is_said_with_a_remedy_and_the_machine_is_looked_at_all_the_same(headrace):
    closed = free_port()
    ran = headrace("doctor", "-b", f"127.0.0.1:{closed}", "--json")
    assert ran.code == 3
    found = {each["check"]: each for each in ran.json["checks"]}
    [finding] = found["advertised-address"]["findings"]
    assert finding["sentence"].startswith(
        f"No broker answers: the broker at 127.0.0.1:{closed} cannot be reached"
    )
    assert found["uvloop"]["outcome"] == "fine"
    assert found["replication"]["outcome"] == "nothing to look at"


def test_a_look_at_the_machine_alone_asks_no_broker_and_others_say_that_none_answers(headrace):
    nowhere = f"127.0.0.1:{free_port()}"
    assert headrace("doctor", "-b", nowhere, "--only", "uvloop").code == 0
    ran = headrace("doctor", "-b", nowhere, "--only", "replication")
    assert (ran.code, ran.err.startswith(f"No broker answers: the broker at {nowhere}")) == (3, True)


def test_a_file_is_examined_without_a_cluster(headrace, tmp_path):
    path = tmp_path / "server.properties"
    path.write_text("listeners=PLAINTEXT://0.0.0.0:9092\nnum.io.thread=3\n")
    ran = headrace("doctor", path, "--no-cluster", "--skip", "interpreter")
    assert ran.code == 1
    assert "Unknown setting num.io.thread. Did you mean num.io.threads?" in ran.out
    assert "may read and write without a login: PLAINTEXT://0.0.0.0:9092" in ran.out


def test_what_does_not_answer_in_time_is_not_waited_for(headrace, broker, topic):
    broker.faults.delay("DescribeCluster", 3600, times=50)
    try:
        ran = headrace("doctor", "--only", "brokers,uvloop", "--timeout", "2s", "--json")
    finally:
        broker.faults.heal()
    found = {each["check"]: each for each in ran.json["checks"]}
    assert found["brokers"]["outcome"] == "not possible"
    assert found["brokers"]["reason"] == "no answer within 2 s"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "everything"], "Valid checks are: advertised-address, "),
        (["--only", "uvloop", "--skip", "uvloop"], "--skip leaves no check"),
        (["--window", "soon"], "'soon' is no duration"),
        (["--timeout", "0s"], "take durations above 0"),
        (["nowhere.properties", "--no-cluster"], "nowhere.properties"),
    ],
)
def test_bad_input_gets_one_sentence(headrace, arguments, sentence):
    ran = headrace("doctor", *arguments)
    assert ran.code in (1, 2)
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_page_lists_every_check_as_the_code_has_it(headrace):
    page = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{each.name}` | {each.severity.value} | {each.looks_at} |" for each in CHECKS]
    listed = json.loads(headrace("doctor", "--list", "--json").out)
    assert [each["check"] for each in listed] == [each.name for each in CHECKS]
    assert headrace("doctor", "--list").lines[0].split() == ["CHECK", "WORST", "LOOKS", "AT"]
