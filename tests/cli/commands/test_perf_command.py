from __future__ import annotations


def test_producing_is_measured(headrace, topic):
    result = headrace("perf", "produce", topic, "--records", 1000, "--size", 20, "--json").json
    assert (result["records"], result["bytes"]) == (1000, 20_000)
    latency = result["latency_ms"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p999"] <= latency["max"]
    assert headrace("topics", "describe", topic, "--json").json[0]["partitions"][0]["latest"] == 1000


def test_lines_of_a_file_can_be_the_load(headrace, topic, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo\n")
    headrace("perf", "produce", topic, "--records", 10, "--file", tmp_path / "lines", "--rate", 1000)
    assert set(headrace("consume", topic, "--from-beginning", "-e").lines) == {"one", "two"}


def test_consuming_is_measured(headrace, topic):
    headrace("perf", "produce", topic, "--records", 1000)
    assert headrace("perf", "consume", topic, "--json").json["records"] == 1000
    assert headrace("perf", "consume", topic).out.startswith("Read 1,000 records in ")


def test_records_that_never_come_end_the_wait(headrace, topic):
    ran = headrace("perf", "consume", topic, "--records", 5, "--timeout", 0.3)
    assert ran.code == 1
    assert "Only 0 of 5 records came" in ran.err


def test_the_way_there_and_back_is_measured(headrace, topic):
    for pace in ((), ("--rate", 500)):
        result = headrace("perf", "end-to-end", topic, "--records", 20, *pace, "--json").json
        assert result["records"] == 20
        assert result["latency_ms"]["p50"] > 0
