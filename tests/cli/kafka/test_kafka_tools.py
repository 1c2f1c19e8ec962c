"""Kafka's own tools: flags of every generation in, Kafka 4.1's output out.

The expected texts are what Kafka's tools print; `make interop` runs the originals against Headrace.
"""

from __future__ import annotations

import json
import re

import pytest


def kafka(headrace, tool):
    return lambda *arguments, **kwargs: headrace("kafka", tool, *arguments, **kwargs)


# --- kafka-topics ---


@pytest.fixture
def topics(headrace):
    return kafka(headrace, "topics")


def test_a_topic_described_as_kafka_does(topics, name):
    assert topics("--create", "--topic", name, "--partitions", 2, "--config", "retention.ms=1000").out == (
        f"Created topic {name}.\n"
    )
    head, first, second = topics("--describe", "--topic", name).lines
    assert re.fullmatch(
        rf"Topic: {name}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention\.ms=1000",
        head,
    )
    assert first == f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert second == f"\tTopic: {name}\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "


def test_flags_may_come_in_any_order_and_be_abbreviated(topics, name):
    assert topics("--topic", name, "--create", "--partition", 3, "--replication-f", 1).code == 0
    assert "PartitionCount: 3" in topics("--desc", f"--topic={name}").out


def test_a_tutorial_from_zookeeper_times_works_with_a_note(topics, name, bootstrap):
    ran = topics(
        "--zookeeper", "localhost:2181", "--create", "--topic", name, "--partition", 1, "--replica", 1
    )
    assert ran.out == f"Created topic {name}.\n"
    assert "use --bootstrap-server" in ran.err
    assert bootstrap in ran.err


def test_another_clusters_zookeeper_is_refused_with_the_way_on(topics):
    ran = topics("--zookeeper", "zk1.example.org:2181", "--list")
    assert ran.code == 1
    assert "use --bootstrap-server HOST:PORT with a broker of the cluster" in ran.err


def test_lists_and_regular_expressions(topics, name):
    for suffix in ("a", "b", "c"):
        topics("--create", "--topic", f"{name}-{suffix}")
    assert topics("--list", "--topic", f"{name}-(a|c)").lines == [f"{name}-a", f"{name}-c"]
    assert topics("--list", "--topic", f"{name}-a,{name}-b").lines == [f"{name}-a", f"{name}-b"]
    topics("--delete", "--topic", f"{name}-.*")
    assert topics("--list", "--topic", f"{name}-.*").out == "\n"


def test_alter_adds_partitions(topics, topic):
    assert topics("--alter", "--topic", topic, "--partitions", 3).out == ""
    assert topics("--alter", "--topic", topic, "--partitions", 2).out == (
        f"Error while executing topic command : The topic {topic} currently has 3 partition(s); "
        "2 would not be an increase.\n"
    )


def test_old_alter_with_settings_still_works(topics, topic):
    ran = topics("--alter", "--topic", topic, "--config", "retention.ms=77")
    assert ran.out == f"Updated config for topic {topic}.\n"
    assert "kafka-configs.sh" in ran.err
    assert "retention.ms=77" in topics("--describe", "--topic", topic).out


def test_existence_is_checked_as_in_kafka(topics, topic, name):
    assert topics("--create", "--topic", topic).out == (
        f"Error while executing topic command : Topic '{topic}' already exists.\n"
    )
    assert topics("--create", "--topic", topic, "--if-not-exists").code == 0
    missing = topics("--describe", "--topic", name)
    assert missing.code == 1
    assert missing.out.startswith(
        f"Error while executing topic command : Topic '{name}' does not exist as expected"
    )
    assert topics("--delete", "--topic", name, "--if-exists").code == 0


def test_reports_on_a_healthy_cluster_are_empty(topics, topic):
    for report in ("under-replicated", "unavailable", "under-min-isr"):
        assert topics("--describe", f"--{report}-partitions").out == ""
    assert f"\tTopic: {topic}\t" in topics("--describe", "--at-min-isr-partitions").out


def test_topics_with_overrides_and_without_internal_ones(topics, topic):
    topics("--alter", "--topic", topic, "--config", "retention.ms=78")
    shown = topics("--describe", "--topics-with-overrides", "--exclude-internal")
    assert [line.split("\t")[0] for line in shown.lines if topic in line] == [f"Topic: {topic}"]
    assert "__consumer_offsets" not in shown.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
        (("--list", "--create"), "Command must include exactly one action"),
        (("--create",), 'Missing required argument "[topic]"'),
        (("--alter", "--topic", "x"), 'Missing required argument "[partitions]"'),
        (("--list", "--bogus"), "--bogus"),
    ],
)
def test_a_bad_line_ends_with_status_1(topics, arguments, sentence):
    ran = topics(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


# --- console producer and consumer ---


@pytest.fixture
def producer(headrace):
    return kafka(headrace, "console-producer")


@pytest.fixture
def consumer(headrace):
    return kafka(headrace, "console-consumer")


LINES = "h1:v1,h2:NIL\tk1\tvalue one\nh1:x\tk2\tNIL\n"


def test_the_console_tools_pass_headers_keys_and_nulls(producer, consumer, topic):
    parse = (
        "--property",
        "parse.key=true",
        "--property",
        "parse.headers=true",
        "--property",
        "null.marker=NIL",
    )
    assert producer("--topic", topic, *parse, stdin=LINES).code == 0
    shown = [f"--property=print.{part}=true" for part in ("key", "headers", "partition", "offset")]
    ran = consumer(
        "--topic", topic, "--from-beginning", "--max-messages", 2, *shown, "--property", "key.separator=|"
    )
    assert ran.lines == [
        "Partition:0|Offset:0|h1:v1,h2:null|k1|value one",
        "Partition:0|Offset:1|h1:x|k2|null",
    ]
    assert ran.err == "Processed a total of 2 messages\n"


def test_flags_of_old_and_new_generations_mean_the_same(producer, consumer, topic, bootstrap):
    producer("--broker-list", bootstrap, "--topic", topic, "--producer-property", "acks=1", stdin="a\n")
    producer("--bootstrap-server", bootstrap, "--topic", topic, "--command-property", "acks=1", stdin="b\n")
    producer(
        "--topic",
        topic,
        "--reader-property",
        "parse.key=true",
        "--sync",
        "--compression-codec",
        "lz4",
        stdin="k\tc\n",
    )
    for flags in (
        ("--property", "print.key=true", "--consumer-property", "client.id=x", "--new-consumer"),
        ("--formatter-property", "print.key=true", "--command-property", "client.id=x"),
    ):
        ran = consumer("--topic", topic, "--from-beginning", "--max-messages", 3, *flags)
        assert ran.lines == ["null\ta", "null\tb", "k\tc"]


def test_a_partition_is_read_from_an_offset(producer, consumer, topic):
    producer("--topic", topic, stdin="a\nb\nc\n")
    ran = consumer("--topic", topic, "--partition", 0, "--offset", 1, "--timeout-ms", 500)
    assert ran.lines == ["b", "c"]
    assert consumer(
        "--topic", topic, "--partition", 0, "--offset", "earliest", "--max-messages", 1
    ).lines == ["a"]


def test_topics_are_included_by_pattern(producer, consumer, name):
    for suffix in ("a", "b"):
        producer("--topic", f"{name}-{suffix}", stdin=f"{suffix}\n")
    ran = consumer("--whitelist", f"{name}-.*", "--from-beginning", "--max-messages", 2)
    assert sorted(ran.lines) == ["a", "b"]


def test_the_consumers_own_group_can_be_named(producer, consumer, topic, name):
    producer("--topic", topic, stdin="a\nb\n")
    first = consumer("--topic", topic, "--from-beginning", "--group", name, "--max-messages", 1)
    second = consumer("--topic", topic, "--consumer-property", f"group.id={name}", "--max-messages", 1)
    assert (first.lines, second.lines) == (["a"], ["b"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Exactly one of --include/--topic is required. "),
        (("--topic", "t", "--offset", "1"), "The partition is required when offset is specified."),
        (
            ("--topic", "t", "--partition", "0", "--offset", "x"),
            "The provided offset value 'x' is incorrect.",
        ),
        (
            ("--topic", "t", "--partition", "0", "--offset", "1", "--from-beginning"),
            "Options from-beginning and offset cannot be specified together.",
        ),
        (
            ("--topic", "t", "--group", "a", "--consumer-property", "group.id=b"),
            "do not match. Detected group ids: 'a', 'b'",
        ),
        (
            ("--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"),
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'",
        ),
        (("--topic", "t", "--formatter", "com.example.Own"), "com.example.Own is Java code"),
    ],
)
def test_the_consumer_refuses_what_kafkas_refuses(consumer, arguments, sentence):
    ran = consumer(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


# --- kafka-configs ---


@pytest.fixture
def configs(headrace):
    return kafka(headrace, "configs")


def test_settings_altered_and_described_as_kafka_does(configs, topic):
    assert configs(
        "--alter", "--topic", topic, "--add-config", "cleanup.policy=[compact,delete],retention.ms=88"
    ).out == (f"Completed updating config for topic {topic}.\n")
    old = configs("--describe", "--entity-type", "topics", "--entity-name", topic)
    assert old.out == configs("--describe", "--topic", topic).out
    assert old.lines[0] == f"Dynamic configs for topic {topic} are:"
    assert old.lines[1] == (
        "  cleanup.policy=compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )
    assert configs("--alter", "--topic", topic, "--delete-config", "retention.ms,cleanup.policy").code == 0
    assert configs("--describe", "--topic", topic).lines == [f"Dynamic configs for topic {topic} are:"]


def test_quotas_of_users_clients_and_addresses(configs, name):
    of_user = ["--entity-type", "users", "--entity-name", name]
    rates = "producer_byte_rate=1024,consumer_byte_rate=20000000,request_percentage=12.5"
    assert configs("--alter", *of_user, "--add-config", rates).out == (
        f"Completed updating config for user {name}.\n"
    )
    assert configs("--describe", "--user", name).out == (
        f"Quota configs for user-principal '{name}' are "
        "producer_byte_rate=1024.0, consumer_byte_rate=2.0E7, request_percentage=12.5\n"
    )
    both = [*of_user, "--entity-type", "clients", "--entity-default"]
    assert configs("--alter", *both, "--add-config", "controller_mutation_rate=5").out == (
        f"Completed updating config for user {name}.\n"
    )
    assert configs("--describe", *of_user, "--entity-type", "clients").out == (
        f"Quota configs for user-principal '{name}', the default client-id are controller_mutation_rate=5.0\n"
    )
    deleted = "producer_byte_rate,consumer_byte_rate,request_percentage"
    assert configs("--alter", "--user", name, "--delete-config", deleted).code == 0
    assert configs("--describe", "--user", name).out == ""
    assert configs("--alter", *both, "--delete-config", "controller_mutation_rate").code == 0
    of_addresses = ["--entity-type", "ips", "--entity-default"]
    assert configs("--alter", *of_addresses, "--add-config", "connection_creation_rate=1000").out == (
        "Completed updating default config for ips in the cluster.\n"
    )
    assert configs("--describe", "--ip-defaults").out == (
        "Quota configs for the default ip are connection_creation_rate=1000.0\n"
    )
    assert configs("--alter", "--ip-defaults", "--delete-config", "connection_creation_rate").code == 0
    assert configs("--describe", "--entity-type", "ips").out == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--entity-type", "clients", "--add-config", "producer_byte_rate=1"],
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips",
        ),
        (
            ["--user", "ada", "--add-config", "producer_byte_rate=much"],
            "Cannot parse quota configuration value for producer_byte_rate: much",
        ),
        (
            ["--client", "app", "--add-config", "retention.ms=1"],
            "Only quota configs can be added for 'clients' using --bootstrap-server. "
            "Unexpected config names: retention.ms",
        ),
        (
            ["--ip", "10.0.0.1", "--add-config", "producer_byte_rate=1"],
            "Only connection quota configs can be added for 'ips' using --bootstrap-server. "
            "Unexpected config names: producer_byte_rate",
        ),
        (
            ["--ip", "nowhere.invalid", "--add-config", "connection_creation_rate=1"],
            "The entity name for ips must be a valid IP or resolvable host, but it is: nowhere.invalid",
        ),
        (
            ["--user", "nobody-here", "--delete-config", "producer_byte_rate"],
            "Invalid config(s): producer_byte_rate",
        ),
        (
            [
                "--entity-type",
                "users",
                "--entity-name",
                "a",
                "--entity-type",
                "clients",
                "--add-config",
                "x=1",
            ],
            "An entity name must be specified for every entity type",
        ),
        (
            ["--user", "a", "--ip", "10.0.0.1", "--add-config", "x=1"],
            "Only 'users' and 'clients' entity types may be specified together",
        ),
        (
            ["--user", "a", "--add-config", "producer_byte_rate=0"],
            "Quota producer_byte_rate must be greater than 0.",
        ),
    ],
)
def test_a_mistaken_quota_gets_kafkas_sentence(configs, arguments, sentence):
    ran = configs("--alter", *arguments)
    assert (ran.code, ran.out, ran.err) == (1, "", f"{sentence}\n")


def test_the_default_of_all_brokers(configs):
    alter = configs(
        "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.retention.ms=88888888"
    )
    assert alter.out == "Completed updating default config for brokers in the cluster.\n"
    shown = configs("--entity-type", "brokers", "--describe")
    assert shown.lines == [
        "Dynamic configs for broker 1 are:",
        "Default configs for brokers in the cluster are:",
        "  log.retention.ms=88888888 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=88888888}",
    ]
    configs("--broker-defaults", "--alter", "--delete-config", "log.retention.ms")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--describe",), "At least one entity type must be specified"),
        (("--alter", "--topic", "t"), "At least one of --add-config, --add-config-file, or --delete-config"),
        (("--alter", "--entity-type", "topics", "--add-config", "a=1"), "An entity name must be specified"),
        (
            ("--describe", "--entity-type", "tables"),
            "Invalid entity type tables, the entity type must be one of",
        ),
        (("--describe", "--broker", "one"), "must be a valid integer broker id, but it is: one"),
        (
            ("--describe", "--alter", "--topic", "t"),
            "Command must include exactly one action: --describe, --alter",
        ),
    ],
)
def test_configs_refuses_what_kafkas_refuses(configs, arguments, sentence):
    ran = configs(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


def test_an_unknown_setting_cannot_be_deleted(configs, topic):
    assert configs("--alter", "--topic", topic, "--delete-config", "foo").err == "Invalid config(s): foo\n"
    assert configs("--describe", "--topic", "nosuch").out == (
        "The topic 'nosuch' doesn't exist and doesn't have dynamic config.\n"
    )


# --- kafka-consumer-groups ---


@pytest.fixture
def groups(headrace):
    return kafka(headrace, "consumer-groups")


@pytest.fixture
def group(producer, consumer, topic, name):
    producer("--topic", topic, stdin="a\nb\nc\n")
    consumer("--topic", topic, "--from-beginning", "--group", name, "--max-messages", 1)
    return name


def test_a_group_described_as_kafka_does(groups, group, topic):
    ran = groups("--describe", "--group", group)
    assert ran.err == f"\nConsumer group '{group}' has no active members.\n"
    wide = max(15, len(topic))
    row = f"{group:<15} {topic:<{wide}} 0          1               3               2               -               -               -"
    assert ran.out == (
        f"\n{'GROUP':<15} {'TOPIC':<{wide}} PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
        f"HOST            CLIENT-ID\n{row}\n"
    )


def test_state_members_and_lists(groups, group, bootstrap):
    state = groups("--describe", "--group", group, "--state").lines
    assert state[1].split() == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert state[2].split() == [group, bootstrap, "(1)", "-", "Empty", "0"]
    assert groups("--describe", "--group", group, "--members").lines[1].split() == (
        ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    )
    assert group in groups("--list").lines
    assert [group, "Empty"] in [line.split() for line in groups("--list", "--state").lines]
    assert [group, "Classic"] in [line.split() for line in groups("--list", "--type", "classic").lines]


def test_offsets_reset_exported_and_deleted(groups, group, topic):
    scope = ("--group", group, "--topic", topic)
    preview = groups("--reset-offsets", *scope, "--to-earliest")
    assert preview.err.startswith("WARN: No action will be performed as the --execute option is missing.")
    assert preview.out == (
        f"\n{'GROUP':<30} {'TOPIC':<30} PARTITION  NEW-OFFSET     \n{group:<30} {topic:<30} 0          0              \n"
    )
    assert groups("--reset-offsets", *scope, "--to-latest", "--execute", "--export").out == f"{topic},0,3\n\n"
    assert " 3               3               0 " in groups("--describe", "--group", group).out
    deleted = groups("--delete-offsets", *scope)
    assert deleted.lines[0] == f"Request succeeded for deleting offsets from group {group}."
    assert deleted.lines[-1].split() == [topic, "0", "Successful"]
    assert groups("--delete", "--group", group).out == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )


def test_a_group_that_is_not_there(groups, name):
    ran = groups("--describe", "--group", name)
    assert ran.code == 1
    assert ran.out == f"\nError: Executing consumer group command failed due to Group {name} not found.\n"


def test_patterns_are_validated_as_the_broker_will_read_them(groups):
    assert groups("--validate-regex", "orders-.*").out == "The regular expression `orders-.*` is valid.\n"
    assert groups("--validate-regex", "a(?=b)").out.startswith("The regular expression `a(?=b)` is invalid: ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--list", "--describe"), "Command must include exactly one action: --list, --describe, --delete"),
        (("--describe",), "Option [describe] takes one of these options: [group], [all-groups]"),
        (("--describe", "--group", "g", "--members", "--state"), "takes at most one of these options"),
        (("--reset-offsets", "--group", "g", "--topic", "t"), "requires one of the following scenarios"),
        (("--reset-offsets", "--group", "g", "--to-latest"), "One of the reset scopes should be defined"),
        (("--list", "--state", "asleep"), "Invalid states list 'asleep'. Valid states are:"),
    ],
)
def test_groups_refuses_what_kafkas_refuses(groups, arguments, sentence):
    ran = groups(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


# --- the rest ---


def test_offsets_of_partitions(headrace, producer, topic):
    offsets = kafka(headrace, "get-offsets")
    producer("--topic", topic, stdin="a\nb\n")
    assert offsets("--topic", topic).out == f"{topic}:0:2\n"
    assert offsets("--topic", topic, "--time", "-2").out == f"{topic}:0:0\n"
    assert offsets("--topic-partitions", f"{topic}:0-1", "--time", "earliest").out == f"{topic}:0:0\n"
    assert offsets("--topic", "nosuch").err == (
        "Error occurred: Could not match any topic-partitions with the specified filters\n"
    )
    assert offsets("--topic", topic, "--time", "soon").err.startswith(
        "Error occurred: Malformed time argument soon."
    )


def test_records_deleted_by_file(headrace, producer, topic, tmp_path):
    producer("--topic", topic, stdin="a\nb\nc\n")
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 2}], "version": 1}))
    assert kafka(headrace, "delete-records")("--offset-json-file", file).out == (
        f"Executing records delete operation\nRecords delete operation completed:\npartition: {topic}-0\tlow_watermark: 2\n"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense", "The input string is not a valid JSON"),
        ("{}", "Missing partitions field"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "t"}]}', "Each partition has a topic, a partition and an offset"),
    ],
)
def test_a_file_of_offsets_that_is_none_is_refused(headrace, tmp_path, text, sentence):
    (tmp_path / "offsets.json").write_text(text)
    ran = kafka(headrace, "delete-records")("--offset-json-file", tmp_path / "offsets.json")
    assert ran.code == 1
    assert sentence in ran.err


def test_log_directories(headrace, producer, topic, broker):
    producer("--topic", topic, stdin="a\n")
    ran = kafka(headrace, "log-dirs")("--describe", "--topic-list", topic)
    assert ran.lines[:2] == [
        "Querying brokers for log directories information",
        "Received log directory information from brokers 1",
    ]
    (found,) = json.loads(ran.lines[2])["brokers"]
    (directory,) = found["logDirs"]
    (partition,) = directory["partitions"]
    assert (found["broker"], directory["logDir"], directory["error"]) == (1, str(broker.data), None)
    assert (partition["partition"], partition["isFuture"], partition["size"] > 60) == (
        f"{topic}-0",
        False,
        True,
    )


def test_api_versions(headrace, bootstrap):
    lines = kafka(headrace, "broker-api-versions")().lines
    assert lines[0] == f"{bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert lines[1] == "\tProduce(0): 0 to 13 [usable: 13],"
    assert lines[-1] == ")"


def test_load_reports_in_kafkas_words(headrace, topic, bootstrap):
    produced = kafka(headrace, "producer-perf-test")(
        "--topic", topic, "--num-records", 500, "--record-size", 10, "--throughput", -1,
        "--producer-props", f"bootstrap.servers={bootstrap}", "acks=1",
    )  # fmt: skip
    assert re.fullmatch(
        r"500 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
        r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99.9th\.\n",
        produced.out,
    )
    header, row = kafka(headrace, "consumer-perf-test")("--topic", topic, "--messages", 500).lines
    assert header == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
        "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    assert row.split(", ")[4] == "500"
    latency = kafka(headrace, "e2e-latency")(bootstrap, topic, 5, 1, 50)
    assert re.search(
        r"Avg latency: [\d.]+ ms\nPercentiles: 50th = \d+, 99th = \d+, 99.9th = \d+\n", latency.out
    )


def test_an_unknown_tool_is_named_with_the_nearest(headrace):
    ran = headrace("kafka", "tpics")
    assert ran.code == 2
    assert "Did you mean 'topics'?" in ran.err


def test_the_tools_are_known_by_their_file_names_too(headrace, topic):
    assert topic in headrace("kafka", "kafka-topics.sh", "--list").out
