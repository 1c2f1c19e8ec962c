"""The files that plans of moves are kept in."""

from __future__ import annotations

import pytest

from headrace.cli.failure import Failure
from headrace.cli.parsing import assignment_file


def test_a_plan_survives_its_file(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(assignment_file.text({("t", 1): [2, 3], ("t", 0): [1, 2]}))
    assert assignment_file.read(file) == {("t", 0): [1, 2], ("t", 1): [2, 3]}


def test_directories_are_kept_apart(tmp_path):
    file = tmp_path / "plan.json"
    directories = {("t", 0, 2): "/disk2"}
    file.write_text(assignment_file.text({("t", 0): [1, 2], ("t", 1): [2]}, directories))
    assert assignment_file.read(file) == {("t", 0): [1, 2], ("t", 1): [2]}
    assert assignment_file.read_directories(file) == directories


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is no JSON"),
        ("[]", 'a list of "partitions"'),
        ('{"partitions": []}', "cannot be empty"),
        ('{"partitions": [{"topic": "t"}]}', "has a topic, a partition and replicas"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "replica list cannot be empty"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "duplicate entries"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/d", "/e"]}]}',
            "needs a directory",
        ),
        ('{"version": 2, "partitions": []}', "Not supported version"),
    ],
)
def test_a_file_that_is_no_plan_is_refused_with_the_reason(tmp_path, text, sentence):
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(Failure, match=sentence):
        assignment_file.read(file)
