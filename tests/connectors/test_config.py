"""A connector's file is checked before anything runs, and each mistake is one sentence that names the setting."""

import pytest

from headrace.connectors import ConfigError
from headrace.connectors.config import declare, load
from headrace.link.contexts import Context, ContextServers


def problems(document, **kwargs):
    with pytest.raises(ConfigError) as caught:
        declare(document, default_name="orders", **kwargs)
    return caught.value.problems


def source(**settings):
    return {"topic": {"name": "orders"}, "source": {"type": "files", "path": "/data", **settings}}


def test_a_short_file_is_enough(tmp_path):
    path = tmp_path / "orders.toml"
    path.write_text('[topic]\nname = "orders"\nkey = "id"\n\n[source]\ntype = "files"\npath = "/data/in"\n')
    declared = load(path, bootstrap="broker:9092")
    assert declared.name == "orders"
    assert declared.topic.key == ("id",)
    assert declared.topic.bootstrap == "broker:9092"
    assert declared.connector.settings.format == "json"


def test_an_unknown_setting_is_named_with_the_nearest_known_one():
    assert problems(source(fromat="csv")) == [
        "source.fromat is not a setting of the files source; did you mean format?"
    ]
    assert problems({**source(), "topics": {}})[0] == "topics is not known here; did you mean topic?"


def test_every_mistake_is_told_at_once():
    document = {
        "topic": {"name": "orders", "partitions": 0, "on_error": "explode"},
        "source": {"type": "files", "format": "xml", "max_bytes": "big"},
        "run": {"every": "soon"},
    }
    assert problems(document) == [
        "topic.on_error is 'explode': choose fail, dead-letter or drop",
        "topic.partitions is 0: it must be at least 1",
        'run.every is \'soon\': it must be a duration such as "5 seconds" or "2 minutes"',
        "source.path is missing: a directory, a file, or a pattern such as /var/log/app/*.log",
        "source.format is 'xml': choose json, csv, text or parquet",
        "source.max_bytes is 'big': it must be a whole number",
    ]


def test_settings_that_contradict_each_other_are_told():
    assert problems(source(format="csv", header=False)) == [
        "source.columns is missing: with header = false the columns need names"
    ]


def test_a_file_has_one_direction():
    both = {**source(), "sink": {"type": "files", "path": "/out"}}
    assert "one of [source] and [sink]" in problems(both)[-1]
    assert "one of [source] and [sink]" in problems({"topic": {"name": "orders"}})[-1]


def test_an_unknown_type_is_named_with_the_nearest_known_one():
    assert problems({"topic": {"name": "orders"}, "source": {"type": "file", "path": "/"}}) == [
        "source.type is 'file', which is no source known here; did you mean files?"
    ]


def test_a_module_that_would_hide_one_of_pythons_own_is_told():
    (problem,) = problems({"topic": {"name": "t"}, "source": {"type": "numbers:Numbers"}})
    assert "numbers is a module of Python's own: give yours another name" in problem


def test_a_type_of_somebody_else_is_given_by_module_and_class():
    assert "has no Nothing" in problems({"topic": {"name": "t"}, "source": {"type": "pytest:Nothing"}})[0]
    assert (
        "not a subclass of Source"
        in problems({"topic": {"name": "t"}, "source": {"type": "pytest:raises"}})[0]
    )
    assert "cannot be loaded" in problems({"topic": {"name": "t"}, "source": {"type": "no_such:Thing"}})[0]


def test_a_password_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("WHERE", "/data")
    assert declare(source(path="${WHERE}/in"), default_name="o").connector.settings.path == "/data/in"
    assert problems(source(path="${HEADRACE_NOWHERE}/in")) == [
        "source.path asks for ${HEADRACE_NOWHERE}, which is not set in the environment"
    ]


def test_client_and_spark_settings_are_flat_whatever_toml_makes_of_their_dots():
    document = source()
    document["topic"]["client"] = {"security": {"protocol": "SSL"}}
    document["spark"] = {"sql": {"shuffle": {"partitions": 2}}}
    declared = declare(document, default_name="orders")
    assert declared.topic.client == {"security.protocol": "SSL"}
    assert declared.spark == {"spark.sql.shuffle.partitions": "2"}


def test_a_file_that_names_no_brokers_takes_those_of_a_context_with_its_settings():
    given = {"bootstrap.servers": "prod:9093", "security.protocol": "SASL_SSL", "client.id": "context"}
    servers = ContextServers.of(Context("prod", given))
    document = source()
    document["topic"]["client"] = {"client": {"id": "file"}}
    topic = declare(document, default_name="orders", bootstrap=servers).topic
    assert topic.bootstrap == "prod:9093"
    assert topic.client == {"security.protocol": "SASL_SSL", "client.id": "file"}
    document["topic"]["bootstrap"] = "own:9092"
    topic = declare(document, default_name="orders", bootstrap=servers).topic
    assert (topic.bootstrap, topic.client) == ("own:9092", {"client.id": "file"})


def test_a_sink_that_reads_json_needs_the_fields():
    document = {"topic": {"name": "orders", "value": "json"}, "sink": {"type": "files", "path": "/out"}}
    assert problems(document) == [
        'topic.schema is missing: value = "json" needs the fields, such as schema = "id BIGINT, name STRING"'
    ]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("id BIGIN", "the field id has the type BIGIN; did you mean BIGINT?"),
        ("id", "the field id has the type missing; there are"),
        ("id INT name STRING", "there is 'name' where a comma is due, after id"),
        ("id INT, id STRING", "it has the field id twice"),
        ("tags ARRAY<STRING", "'>' is missing at its end"),
        ("_offset INT", "names with a leading _ are kept for metadata"),
        ("price DECIMAL(50,2)", "must have 1 to 38 digits"),
    ],
)
def test_a_schema_is_read_without_a_running_spark(schema, sentence):
    topic = {"name": "orders", "value": "json", "schema": schema}
    (told,) = problems({"topic": topic, "sink": {"type": "files", "path": "/out"}})
    assert told.startswith("topic.schema cannot be read: ")
    assert sentence in told


def test_a_schema_has_sparks_types():
    from headrace.connectors.ddl import parse

    text = "id BIGINT NOT NULL, `odd name` decimal(10,2), tags ARRAY<STRUCT<a: INT, b: MAP<STRING, DATE>>>"
    assert parse(text).simpleString() == (
        "struct<id:bigint,odd name:decimal(10,2),tags:array<struct<a:int,b:map<string,date>>>>"
    )


def test_a_file_that_is_not_toml_or_not_there_is_a_sentence(tmp_path):
    (tmp_path / "bad.toml").write_text("[topic\n")
    with pytest.raises(ConfigError, match="is not TOML"):
        load(tmp_path / "bad.toml")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(tmp_path / "none.toml")
