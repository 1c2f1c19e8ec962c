"""Changed queries, and replays into a new version of the output."""

import pytest

from headrace.pipelines.context import Start
from headrace.pipelines.fingerprint import difference, fingerprint

FLOW = """
    from headrace import pipelines as hp
    from pyspark import pipelines as dp

    orders = hp.topic("orders", "id BIGINT, customer STRING, amount DOUBLE")

    @hp.table("spending", key="customer")
    def spending():
        return {query}
"""
TABLE = """
    @dp.table
    def kept():
        return orders.stream()
"""
BY_CUSTOMER = 'orders.stream().groupBy("customer").sum("amount").toDF("customer", "total")'
RENAMED = 'orders.stream().where("id > 0").groupBy("customer").sum("amount").toDF("customer", "total")'
BY_MORE = 'orders.stream().groupBy("customer", "id").sum("amount").toDF("customer", "id", "total")'


def header(record, name):
    value = record.header(f"headrace.dlq.{name}")
    return None if value is None else value.decode()


def test_a_change_that_the_checkpoint_cannot_take_is_explained(
    write_project, run_once, prepared, cluster, spark
):
    cluster.create("orders")
    cluster.send(
        "orders",
        {"id": 1, "customer": "ada", "amount": 5.0},
        b"poison",
        {"id": 2, "customer": "bob", "amount": 7.0},
    )
    root = write_project({"flow.py": FLOW.format(query=BY_CUSTOMER) + TABLE}, "changing")
    run_once(root)

    write_project({"flow.py": FLOW.format(query=RENAMED) + TABLE}, "changing")
    pipeline = prepared(root)
    assert pipeline.checkpoints.problems(pipeline.steps) == []

    write_project({"flow.py": FLOW.format(query=BY_MORE) + TABLE}, "changing")
    pipeline = prepared(root)
    [problem] = pipeline.checkpoints.problems(pipeline.steps)
    assert (
        "it groups by (customer, id) to sum(amount) now, and groups by (customer) to sum(amount) before"
        in str(problem)
    )
    assert "headrace pipeline replay --version NEW" in str(problem)
    assert "headrace pipeline run --reset spending" in str(problem)

    # A new version begins from the first record, beside the old one, with the new query.
    run_once(root, version="v2", start=Start())
    assert {row["customer"]: row["id"] for row in cluster.rows("spending.v2")} == {"ada": 1, "bob": 2}
    assert len(cluster.rows("spending")) == 2
    tables = [root / "storage" / home / "tables/kept" for home in ("", "versions/v2")]
    assert [spark.read.parquet(str(table)).count() for table in tables] == [2, 2]
    assert [letter.raw_value for letter in cluster.records("orders.dlq")] == [b"poison"]
    assert [letter.raw_value for letter in cluster.records("orders.v2.dlq")] == [b"poison"]

    # Or from an offset.
    write_project({"flow.py": FLOW.format(query=BY_MORE)}, "changing")
    run_once(root, version="late", start=Start(offsets={"orders": {0: 2}}))
    assert [row["customer"] for row in cluster.rows("spending.late")] == ["bob"]

    # Or from the dead letters. Code that still does not understand them says so in letters of its own.
    run_once(root, version="vain", start=Start(dead_letters=True))
    assert cluster.rows("spending.vain") == []
    [letter] = cluster.records("orders.vain.dlq")
    told = {name: header(letter, name) for name in ("topic", "partition", "offset", "attempt")}
    assert told == {"topic": "orders", "partition": "0", "offset": "1", "attempt": "2"}
    fixed = FLOW.format(query='orders.stream().selectExpr("value AS customer")').replace(
        '"id BIGINT, customer STRING, amount DOUBLE"', 'format="string"'
    )
    write_project({"flow.py": fixed}, "changing")
    run_once(root, version="mended", start=Start(dead_letters=True))
    assert [row["customer"] for row in cluster.rows("spending.mended")] == ["poison"]
    assert len(cluster.records("orders.dlq")) == 1


STATEFUL = """
    from pyspark.sql import functions as F
    from headrace import pipelines as hp

    views = hp.topic("views", "page STRING, at TIMESTAMP, size {size}", dead_letters=False)
    clicks = hp.topic("clicks", "page STRING, when TIMESTAMP, x INT, y INT", dead_letters=False)

    @hp.topic("per.window")
    def per_window():
        return views.stream().withWatermark("at", "{delay}").groupBy(F.window("at", "{window}"), "page").count()

    @hp.topic("per.session")
    def per_session():
        return views.stream().withWatermark("at", "1 hour").groupBy(F.session_window("at", "{gap}"), "page").count()

    @hp.table("sizes", key="page")
    def sizes():
        return views.stream().groupBy("page").sum("size")

    @hp.topic("both")
    def both():
        v = views.stream().withWatermark("at", "1 hour")
        c = clicks.stream().withWatermark("when", "1 hour").withColumnRenamed("page", "place")
        met = v.join(c, F.expr("page = place AND when BETWEEN at AND at + INTERVAL 1 HOUR"), "{join}")
        return met.select("page", "when", {columns})

    @hp.topic("distinct")
    def distinct():
        return views.stream().withWatermark("at", "1 hour").dropDuplicatesWithinWatermark({duplicates})
"""
AS_IT_WAS = {
    "size": "BIGINT",
    "delay": "1 minute",
    "window": "1 minute",
    "gap": "5 minutes",
    "join": "inner",
    "columns": '"x"',
    "duplicates": '["page"]',
}


@pytest.fixture
def changes(write_project, prepared):
    """What a change of the flows above means to their checkpoints, by the flow's name."""

    def fingerprints(**change):
        text = STATEFUL.format(**{**AS_IT_WAS, **change})
        steps = prepared(write_project({"flows.py": text}, "stateful")).steps
        return {step.name: fingerprint(step.rows) for step in steps}

    before = fingerprints()

    def ask(**change):
        now = fingerprints(**change)
        return {name: why for name in now if (why := difference(before[name], now[name]))}

    return ask


def test_what_spark_would_refuse_or_mix_up_is_found_and_nothing_else(changes):
    assert changes(delay="10 minutes") == {}

    windows = changes(window="5 minutes")
    assert list(windows) == ["per_window"]
    assert "window of 300 s" in windows["per_window"]
    assert "window of 60 s" in windows["per_window"]

    assert list(changes(gap="10 minutes")) == ["per_session"]

    types = changes(size="DOUBLE")
    assert types == {
        "sizes": "its state keeps page STRING, sum(size) DOUBLE now, and kept page STRING, sum(size) BIGINT before"
    }

    kind = changes(join="leftOuter")
    assert list(kind) == ["both"]
    assert "joins two streams (left outer)" in kind["both"]

    more = changes(columns='"x", "y"')
    assert list(more) == ["both"]
    assert more["both"].startswith("its state keeps ")

    assert list(changes(duplicates='["page", "size"]')) == ["distinct"]
