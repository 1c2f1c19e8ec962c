"""A properties file of MirrorMaker 2 becomes the commands that make links."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FILE = """
clusters = primary, backup
primary.bootstrap.servers = p1:9092, p2:9092
primary.security.protocol = SASL_SSL
primary.sasl.jaas.config = org.example.Login required password="hidden";
backup.bootstrap.servers = b1:9092
primary->backup.enabled = true
primary->backup.topics = orders, pay.*
primary->backup.sync.group.offsets.enabled = true
backup->primary.enabled = false
replication.factor = 3
refresh.topics.interval.seconds = 60
"""


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "mm2.properties"
    made.write_text(FILE)
    return made


def test_a_flow_becomes_a_command_with_a_word_on_what_differs(headrace, file):
    out = headrace("mirror", "from-mirror-maker", file).out
    (command,) = [line for line in out.splitlines() if not line.startswith("#")]
    words = shlex.split(command)
    assert words[:6] == ["headrace", "mirror", "create", "primary", "--source", "p1:9092,p2:9092"]
    assert words[-4:] == ["--config", "primary.properties", "-b", "b1:9092"]
    topics = words[words.index("--topics") + 1].split(",")
    assert topics[0] == "orders"
    assert re.fullmatch(topics[1], "payments")
    assert not re.fullmatch(topics[1], "pay.internal")
    groups = words[words.index("--groups") + 1]
    assert re.fullmatch(groups, "billing")
    assert not re.fullmatch(groups, "console-consumer-7")
    assert (
        "# primary.properties holds, from this file: refresh.topics.interval.seconds, sasl.jaas.config" in out
    )
    assert "'orders' stays 'orders' and does not become 'primary.orders'" in out
    assert "ACLs are not copied" in out
    assert "Of no use here, since nothing runs beside the brokers: replication.factor." in out
    assert "hidden" not in out


def test_the_script_of_mirror_maker_is_the_same_command(headrace, file):
    done = subprocess.run(
        [ROOT / "bin" / "connect-mirror-maker.sh", file, "--clusters", "backup"],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert done.stdout == headrace("mirror", "from-mirror-maker", file).out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a=b\n", "The file has no 'clusters'"),
        ("clusters=a,b\na.bootstrap.servers=h:1\n", "The file has no 'b.bootstrap.servers'."),
        ("clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\n", "No flow is enabled"),
    ],
)
def test_mistakes_are_sentences(headrace, tmp_path, text, sentence):
    file = tmp_path / "mm2.properties"
    file.write_text(text)
    ran = headrace("mirror", "from-mirror-maker", file)
    assert ran.code == 1
    assert sentence in ran.err
