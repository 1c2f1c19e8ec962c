from __future__ import annotations


def test_a_setting_is_set_shown_and_taken_back(headrace, topic):
    assert headrace("configs", "alter", "topic", topic, "--set", "retention.ms=7000").out == (
        f"Altered retention.ms of topic {topic}.\n"
    )
    (setting,) = headrace("configs", "describe", "topic", topic, "--json").json
    assert (setting["name"], setting["value"], setting["source"]) == (
        "retention.ms",
        "7000",
        "DYNAMIC_TOPIC_CONFIG",
    )
    headrace("configs", "alter", "topic", topic, "--delete", "retention.ms")
    assert headrace("configs", "describe", "topic", topic, "--json").json == []


def test_defaults_show_when_asked_for(headrace, topic):
    everything = {
        s["name"]: s["value"] for s in headrace("configs", "describe", "topic", topic, "--all", "--json").json
    }
    assert everything["cleanup.policy"] == "delete"
    assert everything["retention.ms"] == "604800000"


def test_the_table_says_where_a_value_comes_from(headrace, topic):
    headrace("configs", "alter", "topic", topic, "--set", "cleanup.policy=compact,delete")
    assert headrace("configs", "describe", "topic", topic).lines == [
        "SETTING         VALUE           SOURCE",
        "cleanup.policy  compact,delete  dynamic_topic",
    ]


def test_a_broker_and_the_default_of_all_brokers_have_settings(headrace):
    assert headrace("configs", "alter", "broker", "--set", "log.retention.ms=99999999").out == (
        "Altered log.retention.ms of all brokers.\n"
    )
    (default,) = headrace("configs", "describe", "broker", "--json").json
    assert (default["name"], default["source"]) == ("log.retention.ms", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    own = {s["name"]: s for s in headrace("configs", "describe", "broker", "1", "--json").json}
    assert own["log.retention.ms"]["value"] == "99999999"
    assert own["listeners"]["source"] == "STATIC_BROKER_CONFIG"
    headrace("configs", "alter", "broker", "--delete", "log.retention.ms")


def test_a_misspelt_setting_is_named_with_the_nearest(headrace, topic):
    ran = headrace("configs", "alter", "topic", topic, "--set", "retntion.ms=1")
    assert ran.code == 1
    assert ran.err == "headrace: Unknown topic setting 'retntion.ms'. Did you mean 'retention.ms'?\n"


def test_a_removed_setting_is_named_with_what_became_of_it(headrace, topic):
    ran = headrace("configs", "alter", "topic", topic, "--set", "message.format.version=2.8")
    assert ran.code == 1
    assert "message.format.version was removed in Kafka 4.0" in ran.err


def test_a_value_that_cannot_be_is_refused_with_the_brokers_reason(headrace, topic):
    assert "retention.ms" in headrace("configs", "alter", "topic", topic, "--set", "retention.ms=soon").err


def test_validate_only_changes_nothing(headrace, topic):
    assert headrace("configs", "alter", "topic", topic, "-s", "retention.ms=1", "--validate-only").code == 0
    assert headrace("configs", "describe", "topic", topic, "--json").json == []


def test_names_that_are_not_there_are_refused(headrace, topic):
    assert (
        f"There is no topic '{topic}x'. Did you mean"
        in headrace("configs", "describe", "topic", f"{topic}x").err
    )
    assert (
        "There is no broker 77; the live ones are 1." in headrace("configs", "describe", "broker", "77").err
    )
    assert "A broker is named by its number" in headrace("configs", "describe", "broker", "one").err
    assert headrace("configs", "describe", "topic").code == 2
    assert headrace("configs", "alter", "topic", topic).code == 2


def test_a_misspelt_broker_setting_is_named_with_the_nearest(headrace):
    for names in ((), ("1",)):
        ran = headrace("configs", "alter", "broker", *names, "--set", "log.retention.mss=1")
        assert ran.code == 1
        assert (
            ran.err
            == "headrace: Unknown broker setting 'log.retention.mss'. Did you mean 'log.retention.ms'?\n"
        )


def test_a_setting_of_a_listener_is_refused_with_the_brokers_reason(headrace):
    name = "listener.name.plaintext.max.connections"
    ran = headrace("configs", "alter", "broker", "1", "--set", f"{name}=many")
    assert ran.code == 1
    assert "Invalid value many" in ran.err
    assert "Unknown" not in ran.err
    assert headrace("configs", "alter", "broker", "1", "--set", f"{name}=7").code == 0
    assert headrace("configs", "alter", "broker", "1", "--delete", name).code == 0


def test_a_setting_that_holds_from_the_start_is_refused_with_the_way_to_change_it(headrace):
    ran = headrace("configs", "alter", "broker", "--set", "num.partitions=3")
    assert ran.code == 1
    assert "Cannot update these configs dynamically: num.partitions." in ran.err
    assert "start it again" in ran.err


def test_a_setting_that_does_not_exist_is_not_deleted_in_silence(headrace, topic):
    ran = headrace("configs", "alter", "topic", topic, "--delete", "retenton.ms")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "headrace: Unknown topic setting 'retenton.ms'. Did you mean 'retention.ms'?\n"
