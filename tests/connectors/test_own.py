"""People's own connectors, by the documented interface, and the documentation's own examples."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from headrace.connectors.config import declare

GUIDE = Path(__file__).parents[2] / "docs" / "connectors.md"


@pytest.mark.timeout(900)
def test_a_source_and_a_sink_of_ones_own_work_by_their_class(run, new_topic, read_all, tmp_path):
    topic = new_topic()
    numbers = {"name": topic, "key": "number", "on_error": "dead-letter", "partitions": 1}
    assert run("numbers", numbers, source={"type": "own:Numbers", "up_to": 100}) is None
    assert [int(record.key) for record in read_all(topic)] == [n for n in range(100) if n != 13]
    (letter,) = read_all(topic + ".dlq")
    assert letter.value == b"13"
    assert letter.header("headrace.dlq.reason") == b"it is unlucky"
    tally = {"type": "own:Tally", "path": str(tmp_path / "sum"), "field": "number"}
    assert run("tally", {"name": topic, "schema": "number BIGINT"}, sink=tally) is None
    assert json.loads((tmp_path / "sum").read_text())["sum"] == sum(range(100)) - 13


def test_the_guides_files_can_be_checked(monkeypatch):
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    files = [block for block in blocks if "[topic]" in block]
    assert len(files) >= 9
    for name in set(re.findall(r"\$\{(\w+)\}", "".join(files))):
        monkeypatch.setenv(name, "secret")
    for text in files:
        declare(tomllib.loads(text), default_name="example")


def test_the_guides_own_source_is_what_is_tested():
    (block,) = re.findall(r"```python\n(from dataclasses.*?)```", GUIDE.read_text(), re.DOTALL)
    namespace = {}
    exec(block, namespace)
    source = namespace["Numbers"]("n", namespace["NumbersSettings"](up_to=3))
    assert list(source.rows(source.start(), source.latest(source.start()))) == [
        {"number": n} for n in range(3)
    ]
