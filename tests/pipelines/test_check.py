"""What `check` finds without running anything, each with its file and line."""

import pytest

from headrace.client import Admin
from headrace.pipelines.errors import ProjectBroken
from headrace.pipelines.fingerprint import fingerprint

BROKEN = """\
from headrace import pipelines as hp
from pyspark import pipelines as dp

orders = hp.topic("orders", "id BIGINT, amount DOUBLE")
ghosts = hp.topic("ghosts", "id BIGINT")


@hp.topic("typo")
def typo():
    return orders.stream().where("amont > 1")


@hp.topic("keyless", key="customer")
def keyless():
    return orders.stream()


@hp.topic("round.a")
def round_a():
    return spark.readStream.table("round_b")


@hp.topic("round.b")
def round_b():
    return spark.readStream.table("round_a")


@hp.topic("batch")
def batch():
    return orders.read()


@dp.append_flow(target="nowhere")
def lost():
    return orders.stream()


@hp.topic("crash")
def crash():
    return orders.stream().where(1 / 0)


@hp.topic("endless", key="id")
def endless():
    return orders.stream().groupBy("id").count()
"""

LOOP = """\
from headrace import pipelines as hp

orders = hp.topic("orders", "id BIGINT")


@orders
def loop():
    return orders.stream()
"""

SQL = """\
-- a comment; with a semicolon
CREATE STREAMING TABLE kept AS
SELECT id,
       amont
FROM STREAM orders;

CREATE STREAMING TABEL mistyped;

SELECT ';';
"""


def problems_of(prepared, root):
    with pytest.raises(ProjectBroken) as broken:
        prepared(root)
    return [str(problem) for problem in broken.value.problems]


def test_each_mistake_is_named_with_file_and_line(write_project, prepared):
    found = problems_of(prepared, write_project({"broken.py": BROKEN, "broken.sql": SQL}, "broken"))
    by_line = {line.split(": ")[0]: line.split(": ", 1)[1] for line in found}
    place = "transformations/broken.{}:{}".format
    assert by_line[place("py", 10)] == "There is no column 'amont' here. There are: amount, id."
    assert by_line[place("py", 13)] == "There is no column 'customer' here. There are: amount, id."
    assert by_line[place("py", 18)].startswith("These feed each other in a circle: ")
    assert by_line[place("py", 28)].startswith("Flow 'batch' does not read a stream")
    assert by_line[place("py", 33)] == "Flow 'lost' writes 'nowhere', which nothing defines."
    assert by_line[place("py", 40)] == "ZeroDivisionError: division by zero."
    assert by_line[place("py", 43)].startswith("An aggregation in output mode append needs an end")
    assert by_line[place("sql", 4)] == "There is no column 'amont' here. There are: amount, id."
    assert by_line[place("sql", 7)].startswith("Syntax error at or near 'TABEL'")
    assert by_line[place("sql", 9)].startswith("This statement defines nothing")


def test_a_flow_that_feeds_itself_is_refused(write_project, prepared):
    [found] = problems_of(prepared, write_project({"loop.py": LOOP}, "loop"))
    assert found.startswith("transformations/loop.py:6: These flows feed each other in a circle")


def test_missing_topics_are_found_but_not_those_a_flow_writes(write_project, prepared, cluster):
    text = """
    from headrace import pipelines as hp

    ghosts = hp.topic("ghosts", "id BIGINT")

    @hp.topic("seen")
    def seen():
        return ghosts.stream()

    @hp.topic("seen.twice")
    def seen_twice():
        return seen.stream()
    """
    pipeline = prepared(write_project({"ghosts.py": text}, "ghosts"))
    [problem] = pipeline.missing_topics()
    assert "Flow 'seen' reads topic 'ghosts'" in str(problem)
    assert "headrace topics create ghosts" in str(problem)


def test_a_topic_declared_with_its_partitions_is_created_though_nobody_writes_it(
    write_project, prepared, cluster
):
    text = """
    from headrace import pipelines as hp

    newcomers = hp.topic("newcomers", "id BIGINT", partitions=3)

    @hp.topic("greeted")
    def greeted():
        return newcomers.stream()
    """
    pipeline = prepared(write_project({"newcomers.py": text}, "newcomers"))
    assert pipeline.missing_topics() == []
    assert sorted(pipeline.create_topics()) == ["greeted", "newcomers", "newcomers.dlq"]
    assert pipeline.create_topics() == []
    with Admin(cluster.bootstrap) as admin:
        widths = {name: len(admin.topic(name).partitions) for name in ("newcomers", "newcomers.dlq")}
    assert widths == {"newcomers": 3, "newcomers.dlq": 3}


def test_a_sink_of_sparks_own_is_not_written_by_two_versions(write_project, prepared, cluster):
    text = """
    from pyspark import pipelines as dp
    from headrace import pipelines as hp

    orders = hp.topic("orders", "id BIGINT")
    dp.create_sink("plain", "headrace", {"topic": "plain"})

    @dp.append_flow(target="plain")
    def copy():
        return orders.stream().selectExpr("CAST(id AS STRING) AS value")
    """
    root = write_project({"copy.py": text}, "copying")
    prepared(root)
    with pytest.raises(ProjectBroken, match="Flow 'copy' writes the sink 'plain', and a new version"):
        prepared(root, version="v2")


@pytest.mark.parametrize(
    ("declaration", "sentence"),
    [
        ('hp.topic("x", "id BIGGINT")', "The schema of 'x' is not valid"),
        ('hp.topic("x", 3)', "The schema of 'x' is a int"),
        ('hp.topic("x", format="xml")', "none of json, avro, protobuf, string, bytes"),
        ('hp.topic("x", {"type": "record"}, format="avro")', "The Avro schema of topic 'x' is not valid"),
        ('hp.topic("x", "id BIGINT", format="protobuf")', "give the generated message class"),
        ('hp.topic("x", "id BIGINT", format="string")', "leave the schema out"),
        ('hp.topic("x", "id INT", expect=[hp.expect("a", "id > 0", otherwise="burn")])', "not 'burn'"),
        (
            'hp.topic("x", "id INT", dead_letters=False, expect=[hp.expect("a", "id > 0")])',
            "choose drop, keep or fail",
        ),
        ('hp.topic("x", "id INT")\nhp.topic("x", "id INT")', "declare it once"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_named(declaration, sentence, write_project, prepared):
    root = write_project({"topics.py": f"from headrace import pipelines as hp\n{declaration}\n"}, "declared")
    [found] = problems_of(prepared, root)
    assert found.startswith("transformations/topics.py:")
    assert sentence in found


def test_an_empty_project_says_so(write_project, prepared):
    [found] = problems_of(prepared, write_project({}, "empty"))
    assert "defines no flow" in found


SHAPES = """\
from headrace import pipelines as hp
from pyspark import pipelines as dp
from pyspark.sql import functions as F

orders = hp.topic("orders", "id BIGINT, customer STRING, at TIMESTAMP, amount DOUBLE", dead_letters=True)
customers = hp.table("customers", "id STRING, name STRING", key="id")


@hp.topic("spending", key="customer", mode="complete")
def spending():
    return orders.stream().groupBy("customer").sum("amount").toDF("customer", "total")


@hp.topic("windows", key="customer")
def windows():
    recent = orders.stream().withWatermark("at", "1 minute")
    counted = recent.groupBy(F.window("at", "5 minutes"), "customer").count()
    return counted.selectExpr("customer", "window.end AS until", "count")


@hp.topic("named", key="id")
def named():
    return orders.stream().join(customers.read().toDF("customer", "name"), "customer")


@dp.table
def distinct():
    return orders.stream().withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["id"])
"""


def looked_at(pipeline):
    return {step.name: (step.rows.schema, step.topics, fingerprint(step.rows)) for step in pipeline.steps}


def test_a_project_that_is_only_checked_looks_the_same_to_spark(write_project, prepared, tmp_path):
    """`check` reads an empty directory in the place of every topic, which spares Spark a Python process for each."""
    root = write_project({"flows.py": SHAPES})
    (tmp_path / "empty").mkdir()
    checked = looked_at(prepared(root, empty=(tmp_path / "empty").as_uri()))
    assert checked == looked_at(prepared(root))
    assert checked["spending"][2]["sources"] == ["headrace orders"]


def test_a_project_that_is_only_checked_has_the_same_mistakes(write_project, prepared, tmp_path):
    root = write_project({"broken.py": BROKEN})
    (tmp_path / "empty").mkdir()
    told = []
    for empty in (None, (tmp_path / "empty").as_uri()):
        with pytest.raises(ProjectBroken) as broken:
            prepared(root, empty=empty)
        told.append([str(problem) for problem in broken.value.problems])
    assert told[0] == told[1]
    assert len(told[0]) > 5
