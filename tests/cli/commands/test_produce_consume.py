from __future__ import annotations

import re
import signal
import subprocess

import pytest


def test_lines_come_back_as_they_went_in(headrace, topic):
    headrace("produce", topic, stdin="one\ntwo\r\ncafé")
    assert headrace("consume", topic, "--from-beginning", "--until-end").lines == ["one", "two", "café"]


def test_keys_nulls_and_headers(headrace, topic):
    headrace(
        "produce",
        topic,
        "-k",
        ":",
        "--null-marker",
        "NIL",
        "-H",
        "a=1",
        "-H",
        "b=x=y",
        stdin="k:v:w\nl:NIL\n",
    )
    assert headrace(
        "consume", topic, "-e", "--from-beginning", "--fields", "offset,headers,key,value"
    ).lines == [
        "Offset:0\ta:1,b:x=y\tk\tv:w",
        "Offset:1\ta:1,b:x=y\tl\tnull",
    ]


def test_bytes_that_are_no_text_survive(headrace, topic):
    headrace("produce", topic, stdin=b"\xff\xfe\n")
    (record,) = headrace("consume", topic, "--from-beginning", "-e", "--json").json_lines
    assert record["value"] == {"base64": "//4="}


def test_a_topic_copied_through_json_is_the_same(headrace, topic, name):
    headrace("topics", "create", name)
    headrace("produce", topic, "-k", ":", "-H", "h=1", stdin="k:v\nl:w\n")
    copied = headrace("consume", topic, "--from-beginning", "-e", "--json")
    assert headrace("produce", name, "--from-json", "--json", stdin=copied.out).json == {
        "topic": name,
        "records": 2,
        "partitions": {"0": 2},
    }
    ours, theirs = (
        headrace("consume", t, "--from-beginning", "-e", "--json").json_lines for t in (topic, name)
    )
    for record in (*ours, *theirs):
        del record["topic"]
    assert ours == theirs


def test_a_file_is_written_whole(headrace, topic, tmp_path):
    (tmp_path / "lines.txt").write_text("".join(f"{n}\n" for n in range(2000)))
    assert (
        headrace("produce", topic, "--file", tmp_path / "lines.txt").err
        == f"Wrote 2000 records to {topic}, in partition 0.\n"
    )
    assert headrace("topics", "describe", topic, "--json").json[0]["partitions"][0]["latest"] == 2000


def test_every_compression_comes_back(headrace, topic):
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        headrace("produce", topic, "--compression", codec, stdin=f"{codec}\n")
    assert headrace("consume", topic, "--from-beginning", "-e").lines == ["gzip", "snappy", "lz4", "zstd"]


def test_the_same_key_goes_where_the_java_client_puts_it(headrace, name):
    headrace("topics", "create", name, "--partitions", 8)
    headrace("produce", name, "-k", ":", stdin="apple:1\nbanana:1\ncherry:1\n")
    placed = headrace("consume", name, "--from-beginning", "-e", "--json").json_lines
    # murmur2 as in org.apache.kafka.common.utils.Utils, positive, modulo 8
    assert {record["key"]: record["partition"] for record in placed} == {"apple": 5, "banana": 5, "cherry": 1}


def test_producing_says_where_the_records_are(headrace, name, tmp_path):
    headrace("topics", "create", name, "--partitions", 8)
    (tmp_path / "few.txt").write_text("apple:1\nbanana:1\ncherry:1\n")
    told = headrace("produce", name, "-k", ":", "--file", tmp_path / "few.txt").err
    assert told == f"Wrote 3 records to {name}: 1 in partition 1, 2 in 5.\n"
    (tmp_path / "many.txt").write_text("".join(f"{n}:x\n" for n in range(400)))
    told = headrace("produce", name, "-k", ":", "--file", tmp_path / "many.txt").err
    assert re.fullmatch(rf"Wrote 400 records to {name}, in 8 partitions, \d+ to \d+ in each\.\n", told)


def test_a_template_says_how_records_look(headrace, topic):
    headrace("produce", topic, "-k", ":", "-H", "a=1", stdin="k:v\n:\n")
    shown = headrace(
        "consume", topic, "-e", "--from-beginning", "--format", r"%t/%p@%o %k(%K)=%v(%V) %h 100%%\x21\n"
    )
    assert shown.lines == [f"{topic}/0@0 k(1)=v(1) a=1 100%!", f"{topic}/0@1 (0)=(0) a=1 100%!"]


def test_topics_are_read_by_pattern_and_named(headrace, name):
    for each in ("a", "b", "other"):
        headrace("produce", f"{name}-{each}", stdin=f"{each}\n")
    pattern = f"^{name}-[ab]$"
    shown = headrace("consume", pattern, "-e", "--from-beginning", "--fields", "topic,value")
    assert sorted(shown.lines) == [f"Topic:{name}-a\ta", f"Topic:{name}-b\tb"]
    grouped = headrace("consume", pattern, "--group", name, "--from-beginning", "--max", 2)
    assert sorted(grouped.lines) == ["a", "b"]
    assert f"No topic matches '^{name}-z'" in headrace("consume", f"^{name}-z", "-e").err


def test_times_are_readable_as_text_and_exact_as_json(headrace, topic):
    headrace("produce", topic, "--from-json", stdin='{"value": "a", "timestamp": 1700000000123}\n')
    assert headrace("consume", topic, "-e", "--from-beginning", "--fields", "timestamp,value").lines == [
        "CreateTime:2023-11-14T22:13:20.123Z\ta"
    ]
    (record,) = headrace("consume", topic, "-e", "--from-beginning", "--json").json_lines
    assert record["timestamp"] == 1700000000123


def test_reading_starts_where_it_is_told(headrace, topic):
    headrace("produce", topic, stdin="a\nb\nc\nd\n")
    for arguments, expected in [
        (("--offset", "2"), ["c", "d"]),
        (("--offset", "-1"), ["d"]),
        (("--offset", "earliest", "--max", "1"), ["a"]),
        (("--since", "1h"), ["a", "b", "c", "d"]),
        (("--since", "2100-01-01"), []),
        (("--from-beginning", "--partition", "0", "--max", "2"), ["a", "b"]),
        ((), []),
    ]:
        assert headrace("consume", topic, "--until-end", *arguments).lines == expected, arguments


def test_a_group_goes_on_where_it_stopped(headrace, topic, name):
    headrace("produce", topic, stdin="a\nb\nc\n")
    assert headrace("consume", topic, "--group", name, "--from-beginning", "--max", 2).lines == ["a", "b"]
    assert headrace("consume", topic, "--group", name, "--from-beginning", "--max", 1).lines == ["c"]


def test_silence_ends_the_wait(headrace, topic):
    assert headrace("consume", topic, "--timeout", "0.3").code == 0


def test_a_topic_is_created_on_first_use(headrace, name):
    headrace("produce", name, stdin="a\n")
    assert headrace("consume", name, "--from-beginning", "-e").lines == ["a"]


def test_reading_an_unknown_topic_is_refused_and_does_not_create_it(headrace, name):
    ran = headrace("consume", name, "--until-end")
    assert ran.code == 1
    assert f"There is no topic '{name}'." in ran.err
    assert name not in headrace("topics", "list").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--fields", "nonsense"), "--fields takes any of"),
        (("--format", "%z"), "'%z' in the format '%z' is no field"),
        (("--format", "%v", "--json"), "Give one of --format, --fields and --json"),
        (("--format", r"\q"), r"'\q' in the format '\q' is no escape"),
        (("--offset", "soon"), "--offset takes earliest, latest, a number or -N"),
        (("--since", "soon"), "is no duration"),
        (("--from-beginning", "--offset", "3"), "Give one of --from-beginning, --offset and --since"),
        (("--group", "g", "--offset", "3"), "A group decides itself where to read"),
    ],
)
def test_contradictions_are_refused_before_anything_happens(headrace, topic, arguments, sentence):
    ran = headrace("consume", topic, *arguments)
    assert ran.code == 2
    assert sentence in ran.err


def test_a_line_without_its_separator_stops_with_its_number(headrace, topic):
    ran = headrace("produce", topic, "-k", ":", stdin="a:1\nb\n")
    assert ran.code == 1
    assert "line number 2" in ran.err


def test_a_partition_that_is_not_there_is_refused(headrace, topic):
    assert "has no such partition" in headrace("produce", topic, "--partition", 7, stdin="a\n").err
    assert "There is no partition 7" in headrace("consume", topic, "--partition", 7, "-e").err


def test_a_record_too_large_is_refused_with_the_brokers_reason(headrace, name):
    headrace("topics", "create", name, "--config", "max.message.bytes=100")
    ran = headrace("produce", name, stdin="x" * 1000)
    assert ran.code == 1
    assert "was not written: " in ran.err


def test_removed_and_unknown_settings_get_a_sentence(headrace, topic):
    ran = headrace("produce", topic, "-P", "request.required.acks=1", "-P", "linger.mss=3", stdin="a\n")
    assert ran.code == 0
    assert "request.required.acks was removed from Kafka; acks is its successor" in ran.err
    assert "'linger.mss' is unknown and ignored. Did you mean 'linger.ms'?" in ran.err


def test_records_are_printed_as_they_arrive(headrace, start, topic):
    reader = start("consume", topic, "--from-beginning")
    headrace("produce", topic, stdin="first\n")
    assert reader.stdout.readline() == "first\n"
    headrace("produce", topic, stdin="second\n")
    assert reader.stdout.readline() == "second\n"
    reader.send_signal(signal.SIGINT)
    assert reader.wait(30) == 130
    assert reader.stderr.read() == ""


def test_typed_lines_are_sent_without_waiting_for_the_end(headrace, start, topic):
    reader = start("consume", topic, "--from-beginning")
    writer = start("produce", topic)
    writer.stdin.write("typed\n")
    writer.stdin.flush()
    assert reader.stdout.readline() == "typed\n"


def test_a_terminated_member_leaves_its_group(headrace, start, topic, name):
    headrace("produce", topic, stdin="a\n")
    reader = start("consume", topic, "--group", name, "--from-beginning")
    assert reader.stdout.readline() == "a\n"
    reader.terminate()
    assert reader.wait(30) == 143
    assert headrace("groups", "members", name, "--json").json == [
        {"group": name, "state": "Empty", "members": []}
    ]


def test_a_reader_that_has_seen_enough_is_no_failure(headrace, start, topic):
    headrace("produce", topic, stdin="".join(f"{n}\n" for n in range(50_000)))
    reader = start("consume", topic, "--from-beginning")
    assert reader.stdout.readline() == "0\n"
    reader.stdout.close()
    assert reader.wait(30) == 141
    assert reader.stderr.read() == ""
    assert isinstance(reader, subprocess.Popen)


def test_a_topic_that_producing_made_is_remarked_upon(headrace, name):
    assert f"There was no topic {name}; it has been created" in headrace("produce", name, stdin="a\n").err
    assert headrace("produce", name, stdin="b\n").err == ""


def test_a_new_topic_that_is_named_nearly_like_another_may_be_a_slip(headrace, name):
    headrace("topics", "create", f"{name}-orders")
    told = headrace("produce", f"{name}-ordres", stdin="a\n").err
    assert told.endswith(
        f"Did you mean '{name}-orders'? Then 'headrace topics delete {name}-ordres' takes the new one away.\n"
    )
