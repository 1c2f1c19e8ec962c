"""`headrace degrade` as an operator uses it, on a runner that is busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.client import Admin, Producer
from headrace.testing.broker import BrokerThread
from tests.waiting import until

WORKER = """
import sys
from headrace.client import Runner, SampleByKey
Runner(
    {"order": lambda record: None, "sms": lambda record: None},
    sys.argv[1],
    topics="orders",
    group_id="shop",
    degrade=[SampleByKey(keep=0, when="command")],
    commit_interval=0.1,
    auto_offset_reset="earliest",
).run()
"""


@pytest.fixture
def shop(broker: BrokerThread, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with Admin(broker.bootstrap) as admin:
        admin.create_topic("orders", partitions=2, exist_ok=True)
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    worker = subprocess.Popen([sys.executable, str(program), broker.bootstrap])
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def rule(headrace, name):
    (status,) = headrace("degrade", "status", "shop", "--json").json
    return next((each for each in status["rules"] if each["rule"] == name), None)


def test_rules_are_switched_on_and_off_and_what_was_dropped_is_replayed(headrace, broker, shop) -> None:
    until(lambda: (rule(headrace, "sample") or {}).get("states") == {"off": 1})
    ran = headrace("degrade", "on", "shop", "sample", "--why", "the sale", "--json")
    assert (ran.json["confirmed"], ran.json["instances"], ran.json["order"]) == (1, 1, "on")
    with Producer(broker.bootstrap) as producer:
        for number in range(50):
            producer.send_and_forget("orders", str(number), key=str(number))
    until(lambda: rule(headrace, "sample")["left"] == 50)
    (line,) = [line for line in headrace("degrade", "status").lines if " sample " in line]
    assert "held on" in line
    assert "the sale" in line
    assert rule(headrace, "sample")["command"]["by"].partition("@")[0]

    ran = headrace("degrade", "off", "shop")
    assert ran.code == 0
    assert ran.out == (
        "The rules group, order, sample, sms of shop no longer act: nothing is left out by them.\n"
    )
    assert ran.err == ""
    assert rule(headrace, "group")["states"] == {"held off": 1}
    assert headrace("degrade", "auto", "shop", "--json").json["confirmed"] == 1
    assert rule(headrace, "sms")["states"] == {"off": 1}

    ran = headrace("degrade", "replay", "shop", "--rule", "sample", "--json")
    assert (ran.json["replayed"], ran.json["lost"], ran.json["to"]) == (50, 0, "shop.replay")
    assert headrace("degrade", "replay", "shop").out == "Replayed 0 records of shop into shop.replay.\n"
    (status,) = headrace("degrade", "status", "shop", "--json").json
    assert (status["dropped"], status["replayed"], status["left"]) == (50, 50, 0)

    ran = headrace("degrade", "on", "shop", "smss")
    assert ran.code == 1
    assert ran.err == "headrace: The group shop has no rule 'smss': did you mean 'sms'?\n"


def test_what_makes_no_sense_is_said_in_a_sentence(headrace) -> None:
    ran = headrace("degrade", "off", "nobody")
    assert ran.code == 1
    assert "Nothing with rules runs in the group nobody" in ran.err
    ran = headrace("degrade", "replay", "nobody")
    assert ran.code == 1
    assert ran.err == (
        "headrace: The group nobody has never dropped anything: there is no topic nobody.degraded.\n"
    )
    assert headrace("degrade", "on", "nobody", "sample", "--for", "soon").code == 2
    ran = headrace("degrade", "on", "later", "sample", "--for", "1h")
    assert ran.code == 0
    assert "the command waits for it" in ran.err
    assert rule_of(headrace, "later") == {"on"}


def rule_of(headrace, group):
    (status,) = headrace("degrade", "status", group, "--json").json
    return {each["command"]["order"] for each in status["rules"]}
