"""Files to a topic and a topic to files, on Spark, each record exactly once although a worker is killed."""

import json


def lines(directory, pattern="*.jsonl"):
    return [json.loads(line) for path in sorted(directory.glob(pattern)) for line in path.open()]


def test_a_topic_goes_to_files_named_after_their_offsets(run, new_topic, produce, tmp_path):
    topic = new_topic(2)
    produce(topic, range(100), partition=0)
    produce(topic, range(100, 150), partition=1)
    json_topic = {"name": topic, "value": "json", "schema": "id BIGINT"}
    sink = {"type": "files", "path": str(tmp_path / "out")}
    assert run("to-files", json_topic, sink=sink) is None
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{topic}-00000-{0:020d}-{100:020d}.jsonl",
        f"{topic}-00001-{0:020d}-{50:020d}.jsonl",
    ]
    produce(topic, range(150, 160), partition=1)
    assert run("to-files", json_topic, sink=sink) is None
    assert sorted(row["id"] for row in lines(tmp_path / "out")) == list(range(160))
