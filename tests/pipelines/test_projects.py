"""Projects of Spark Declarative Pipelines, with and without Headrace's words, in Python and in SQL."""

PLAIN = """
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F

    OPTIONS = {{"kafka.bootstrap.servers": "{bootstrap}"}}
    SCHEMA = "id BIGINT, amount DOUBLE"

    dp.create_sink("large", "headrace", {{**OPTIONS, "topic": "large"}})

    @dp.temporary_view
    def orders():
        raw = spark.readStream.format("headrace").options(**OPTIONS, subscribe="orders", startingOffsets="earliest").load()
        return raw.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("o")).select("o.*")

    @dp.append_flow(target="large")
    def large_orders():
        rows = spark.readStream.table("orders").where("amount >= 100")
        return rows.select(F.col("id").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))

    @dp.table
    def kept():
        return spark.readStream.table("orders")
"""

SQL = """
    CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders, sum(amount) AS amount FROM kept;
"""

TYPED = """
    from headrace import pipelines as hp

    orders = hp.topic("orders", "id BIGINT, amount DOUBLE")
    hp.topic("big", "id BIGINT, amount DOUBLE", key="id")

    @hp.topic("large", key="id")
    def large_orders():
        return orders.stream().where("amount >= 100")
"""

TYPED_SQL = """
    CREATE TEMPORARY VIEW sizeable AS SELECT * FROM STREAM orders WHERE amount >= 10;

    CREATE FLOW big_orders AS INSERT INTO big BY NAME
    SELECT id, amount FROM STREAM sizeable WHERE amount >= 100;
"""

ORDERS = [{"id": 1, "amount": 50.0}, {"id": 2, "amount": 150.0}]


def test_a_project_without_a_word_of_headrace_runs_unchanged(write_project, run_once, cluster, spark):
    cluster.create("orders", "large")
    cluster.send("orders", *ORDERS)
    root = write_project({"flows.py": PLAIN.format(bootstrap=cluster.bootstrap), "totals.sql": SQL}, "plain")
    run_once(root)
    assert cluster.rows("large") == [ORDERS[1]]
    assert spark.table("totals").collect() == [(2, 200.0)]

    # The next run goes on where this one ended, and finds its tables again.
    cluster.send("orders", {"id": 3, "amount": 300.0})
    run_once(root)
    assert [row["id"] for row in cluster.rows("large")] == [2, 3]
    assert spark.table("totals").collect() == [(3, 500.0)]


def test_sql_reads_and_writes_topics_by_name(write_project, run_once, cluster):
    if "orders" not in cluster.topics():
        cluster.create("orders")
        cluster.send("orders", *ORDERS)
    run_once(write_project({"topics.py": TYPED.split("@hp")[0], "flows.sql": TYPED_SQL}, "sql"))
    assert cluster.rows("big")[0] == ORDERS[1]
    assert cluster.records("big")[0].raw_key == b"2"
