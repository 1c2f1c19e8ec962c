from __future__ import annotations


def test_a_topic_is_created_described_and_deleted(headrace, name):
    assert headrace("topics", "create", name, "--partitions", 3, "--config", "retention.ms=1000").out == (
        f"Created topic {name}.\n"
    )
    (topic,) = headrace("topics", "describe", name, "--json").json
    assert topic["topic"] == name
    assert topic["configs"] == {"retention.ms": "1000"}
    assert [(p["id"], p["earliest"], p["latest"]) for p in topic["partitions"]] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
    ]
    assert name in [t["topic"] for t in headrace("topics", "list", "--json").json]
    assert headrace("topics", "delete", name).out == f"Deleted topic {name}.\n"
    assert name not in headrace("topics", "list").out


def test_a_description_is_readable(headrace, name):
    headrace("topics", "create", name, "--partitions", 2)
    headrace("produce", name, "--partition", 1, stdin="a\nb\n")
    head, header, first, second = headrace("topics", "describe", name).lines
    assert head.startswith(f"Topic {name}, id ")
    assert header.split() == ["PARTITION", "LEADER", "REPLICAS", "ISR", "FIRST", "OFFSET", "NEXT", "OFFSET"]
    assert first.split() == ["0", "1", "1", "1", "0", "0"]
    assert second.split() == ["1", "1", "1", "1", "0", "2"]


def test_several_topics_at_once(headrace, name):
    headrace("topics", "create", f"{name}-a", f"{name}-b")
    assert headrace("topics", "delete", f"{name}-a", f"{name}-b", "--json").json == {
        "deleted": [f"{name}-a", f"{name}-b"],
        "missing": [],
    }


def test_a_topic_that_exists_is_an_error_unless_accepted(headrace, topic):
    refused = headrace("topics", "create", topic)
    assert refused.code == 1
    assert "already exists" in refused.err
    accepted = headrace("topics", "create", topic, "--if-not-exists", "--json")
    assert (accepted.code, accepted.json) == (0, {"created": [], "existing": [topic]})


def test_validate_only_creates_nothing(headrace, name):
    assert headrace("topics", "create", name, "--validate-only").out == f"Would create topic {name}.\n"
    assert headrace("topics", "describe", name).code == 1


def test_an_unknown_topic_is_named_with_the_nearest(headrace, topic):
    for command in (["describe"], ["delete"], ["alter", "--partitions", 2], ["delete-records", "--all"]):
        ran = headrace("topics", command[0], topic[:-1] + "x" + topic[-1], *command[1:])
        assert ran.code == 1
        assert f"Did you mean '{topic}'?" in ran.err


def test_a_topic_with_no_name_alike_is_answered_with_where_to_look(headrace):
    ran = headrace("topics", "describe", "qqqqqqqqqqqq")
    assert ran.err == (
        "headrace: There is no topic 'qqqqqqqqqqqq'. 'headrace topics list' shows what there is.\n"
    )


def test_a_missing_topic_is_no_error_when_accepted(headrace, name):
    assert headrace("topics", "delete", name, "--if-exists").code == 0


def test_partitions_are_added_but_never_removed(headrace, topic):
    grown = headrace("topics", "alter", topic, "--partitions", 4)
    assert grown.out == f"Topic {topic} has 4 partitions now (it had 1).\n"
    assert "Keys may map to other partitions" in grown.err
    refused = headrace("topics", "alter", topic, "--partitions", 2)
    assert refused.code == 1
    assert "can be added but not removed" in refused.err
    assert (
        headrace("topics", "alter", topic, "--partitions", 4).out
        == f"Topic {topic} already has 4 partitions.\n"
    )


def test_settings_are_altered_beside_partitions(headrace, topic):
    headrace("topics", "alter", topic, "--config", "retention.ms=5")
    assert headrace("topics", "describe", topic, "--json").json[0]["configs"] == {"retention.ms": "5"}


def test_a_misspelt_setting_is_named_with_the_nearest(headrace, name):
    ran = headrace("topics", "create", name, "--config", "retntion.ms=5")
    assert ran.code == 1
    assert "Did you mean 'retention.ms'?" in ran.err


def test_more_replicas_than_brokers_are_refused_with_the_count(headrace, name):
    ran = headrace("topics", "create", name, "--replication-factor", 3)
    assert ran.code == 1
    assert "only 1 broker(s)" in ran.err


def test_records_before_an_offset_are_deleted(headrace, topic):
    headrace("produce", topic, stdin="a\nb\nc\n")
    assert headrace("topics", "delete-records", topic, "--before", 2, "--json").json == [
        {"topic": topic, "partition": 0, "earliest": 2}
    ]
    assert headrace("consume", topic, "--from-beginning", "--until-end").lines == ["c"]


def test_healthy_topics_are_in_no_report(headrace, topic):
    assert headrace("topics", "describe", "--under-replicated", "--unavailable", "--json").json == []


def test_internal_topics_show_only_when_asked_for(headrace, topic):
    headrace("produce", topic, stdin="a\n")
    headrace("consume", topic, "--group", "internal-topics", "--from-beginning", "--max", 1)
    assert "__consumer_offsets" not in headrace("topics", "list").out
    headrace("topics", "create", "__headrace_test")
    assert "__headrace_test" not in headrace("topics", "list").out
    shown = headrace("topics", "list", "--internal").out
    assert "__consumer_offsets" in shown
    assert "__headrace_test" in shown


def test_a_refusal_names_the_topic_once(headrace, topic):
    ran = headrace("topics", "create", topic)
    assert ran.err == f"headrace: Topic '{topic}' already exists.\n"


def test_a_topic_without_a_name_is_refused_in_a_sentence(headrace):
    refused = headrace("topics", "describe", "")
    assert refused.code == 1
    assert "The name of a topic must not be empty." in refused.err
