from __future__ import annotations

import signal

import pytest


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


def names(headrace):
    return [each["topic"] for each in headrace("topics", "list", "--json").json]


QUICK = ("--duration", "200ms", "--max-latency", "max=60s", "--max-rate", 200, "--start", 100)


def test_the_capacity_of_a_scratch_topic_is_found_and_the_topic_removed(headrace, topic):
    before = names(headrace)
    found = headrace("perf", "capacity", "--topic", topic, *QUICK, "--json").json
    assert found["topic"].startswith("headrace-capacity-")
    assert [each["records_per_second"] for each in found["steps"]] == [100, 200]
    assert (found["sustained"]["records_per_second"], found["not_sustained"]) == (200, None)
    assert found["sustained"]["arrived"] == found["sustained"]["sent"] == 40
    assert found["plan_for_records_per_second"] == 140
    assert names(headrace) == before
    assert headrace("topics", "describe", topic, "--json").json[0]["partitions"][0]["latest"] == 0


def test_each_step_is_shown_and_a_bound_that_nothing_keeps_fails(headrace):
    ran = headrace("perf", "capacity", *QUICK)
    assert ran.code == 0, ran.err
    assert ran.lines[0].startswith("Measuring headrace-capacity-")
    assert "100 records/s: p50 " in ran.lines[1]
    assert ran.lines[1].endswith("sustained")
    assert any(line.startswith("Plan for 140 records/s") for line in ran.lines)
    ran = headrace("perf", "capacity", *QUICK, "--max-latency", "p50=0.001ms", "--start", 2)
    assert ran.code == 1
    assert "No rate was sustained within p50=0.001ms, not even 1.0 records/s" in ran.err


def test_an_existing_topic_is_loaded_only_when_told_to(headrace, topic):
    found = headrace("perf", "capacity", "--topic", topic, "--into-existing", *QUICK, "--json").json
    assert found["topic"] == topic
    assert headrace("topics", "describe", topic, "--json").json[0]["partitions"][0]["latest"] >= 60


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-latency", "fast"], "--max-latency takes a percentile and a duration"),
        (["--max-latency", "p99=0s"], "--max-latency takes a percentile and a duration"),
        (["--into-existing"], "--into-existing belongs to --topic"),
        (["--topic", "nowhere"], "There is no topic 'nowhere'"),
        (["--acks", "2"], "--acks takes 0, 1 or all"),
        (["--topic", "x", "--into-existing", "--partitions", "3"], "are for a scratch topic"),
    ],
)
def test_bad_input_gets_one_sentence(headrace, arguments, sentence):
    ran = headrace("perf", "capacity", *arguments)
    assert ran.code in (1, 2)
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_test_that_is_interrupted_leaves_no_topic_behind(headrace, start):
    running = start("perf", "capacity", "--duration", "1h", "--max-latency", "max=60s")
    name = running.stdout.readline().split()[1]
    assert name in names(headrace)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert name not in names(headrace)
