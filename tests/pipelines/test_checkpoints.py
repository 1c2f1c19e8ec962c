"""The note in a checkpoint that tells what its query was, when a run is stopped while it is written."""

import json
import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from headrace.pipelines.errors import PipelineError

FLOW = """
    from headrace import pipelines as hp

    events = hp.topic("{topic}", "id BIGINT")

    @hp.topic("{topic}.copy")
    def copied():
        return events.stream().where("{condition}")
"""


@pytest.fixture
def project(write_project, cluster):
    def write(topic, condition="id > 0"):
        if topic not in cluster.topics():
            cluster.create(topic)
        return write_project({"flow.py": FLOW.format(topic=topic, condition=condition)}, topic)

    return write


def note_of(root):
    [note] = root.glob("storage/_checkpoints/*/copied/0/headrace.json")
    return note


def step_of(pipeline):
    [step] = [step for step in pipeline.steps if step.name == "copied"]
    return step


def create_with_checksum(spark, location, content):
    """As an earlier version did: with a file of checksums beside it."""
    path = spark._jvm.org.apache.hadoop.fs.Path(location)
    out = path.getFileSystem(spark._jsc.hadoopConfiguration()).create(path, True)
    out.write(bytearray(content))
    out.close()


def test_a_reader_of_the_note_never_meets_half_of_it(project, prepared):
    pipeline = prepared(project("noted"))
    plain = step_of(pipeline)
    steps = [plain, replace(plain, rows=plain.rows.distinct())]
    whole = set()
    for step in steps:
        pipeline.checkpoints.remember(step)
        note = note_of(pipeline.project.root)
        whole.add(note.read_bytes())
    assert len(whole) == 2  # so each step replaces the other's
    seen = set()
    done = threading.Event()

    def write():
        try:
            rounds = 0
            while rounds < 20 or not whole <= seen:
                for step in steps:
                    pipeline.checkpoints.remember(step)
                rounds += 1
        finally:
            done.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    while not done.is_set():
        with suppress(FileNotFoundError):  # for a moment there may be none
            seen.add(note.read_bytes())
    writer.join()
    assert seen == whole


def test_a_damaged_note_is_told_with_the_remedy_and_nothing_is_written_twice(
    project, prepared, run_once, cluster
):
    root = project("damaged")
    cluster.send("damaged", {"id": 1})
    run_once(root)
    note = note_of(root)
    pipeline = prepared(root)
    for damage in (b"", b'{"sources": ["hea', b"[]"):
        note.write_bytes(damage)
        [problem] = pipeline.checkpoints.problems(pipeline.steps)
        assert f"{note} is " in str(problem)
        assert "delete that file and run again" in str(problem)
        assert "headrace pipeline run --reset copied" in str(problem)

    note.unlink()
    cluster.send("damaged", {"id": 2})
    run_once(root)
    assert [row["id"] for row in cluster.rows("damaged.copy")] == [1, 2]


def test_a_note_damaged_before_anything_was_read_does_not_keep_the_flow_from_starting(project, prepared):
    root = project("early")
    pipeline = prepared(root)
    pipeline.checkpoints.remember(step_of(pipeline))
    note_of(root).write_bytes(b"")
    assert pipeline.checkpoints.problems(pipeline.steps) == []
    pipeline.checkpoints.remember(step_of(pipeline))
    assert json.loads(note_of(root).read_bytes())["sources"] == ["headrace early"]


def test_a_note_written_by_an_earlier_version_is_read_and_replaced(project, prepared, spark):
    pipeline = prepared(project("older"))
    step = step_of(pipeline)
    content = b'{"sources": ["headrace older"], "state": [], "kept": []}'
    create_with_checksum(spark, f"{pipeline.checkpoints.location(step)}/headrace.json", content)
    assert pipeline.checkpoints.problem(step) is None
    pipeline.checkpoints.remember(step)
    assert pipeline.checkpoints.problem(step) is None


def test_a_note_whose_checksum_is_of_another_content_is_damaged(project, prepared, spark, run_once):
    root = project("altered")
    run_once(root)
    pipeline = prepared(root)
    content = b'{"sources": ["headrace altered"], "state": [], "kept": []}'
    create_with_checksum(spark, f"{pipeline.checkpoints.location(step_of(pipeline))}/headrace.json", content)
    assert pipeline.checkpoints.problems(pipeline.steps) == []
    note_of(root).write_bytes(content.replace(b"altered", b"ALTERED"))
    [problem] = pipeline.checkpoints.problems(pipeline.steps)
    assert f"{note_of(root)} is damaged. If its query is as it was" in str(problem)


def test_a_note_that_cannot_be_read_now_is_not_to_be_deleted(project, prepared):
    root = project("unreadable")
    pipeline = prepared(root)
    pipeline.checkpoints.remember(step_of(pipeline))
    note = note_of(root)
    note.unlink()
    note.mkdir()  # which storage refuses to open
    with pytest.raises(PipelineError, match=r"cannot be read now: .*headrace\.json: .*; try again") as raised:
        pipeline.checkpoints.problems(pipeline.steps)
    assert "delete" not in str(raised.value)
    assert "\n" not in str(raised.value)
