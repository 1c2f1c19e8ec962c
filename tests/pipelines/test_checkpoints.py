"""The note in a checkpoint that tells what its query was, when a run is stopped while it is written."""

import json
import threading

import pytest

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


def test_a_reader_of_the_note_never_meets_half_of_it(project, prepared):
    pipeline = prepared(project("noted"))
    step = step_of(pipeline)
    pipeline.checkpoints.remember(step)
    note = note_of(pipeline.project.root)
    done = threading.Event()

    def write():
        try:
            for _ in range(20):
                pipeline.checkpoints.remember(step)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(note.read_bytes())
    writer.join()
    assert len(seen) == 1
    assert json.loads(seen.pop())["sources"] == ["headrace noted"]


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
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{pipeline.checkpoints.location(step)}/headrace.json")
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())
    out = system.create(path, True)  # with a file of checksums beside it
    out.write(bytearray(b'{"sources": ["headrace older"], "state": [], "kept": []}'))
    out.close()
    assert pipeline.checkpoints.problem(step) is None
    pipeline.checkpoints.remember(step)
    assert pipeline.checkpoints.problem(step) is None
