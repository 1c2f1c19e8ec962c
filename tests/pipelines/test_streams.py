"""Windows, watermarks, joins and state: plain Spark between a topic and a topic."""

FLOWS = """
    import pandas as pd
    from pyspark.sql import functions as F
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    from headrace import pipelines as hp

    views = hp.topic("views", "page STRING, at TIMESTAMP", dead_letters=False)
    orders = hp.topic("orders", "id BIGINT, customer STRING, at TIMESTAMP", dead_letters=False)
    payments = hp.topic("payments", "order BIGINT, paid TIMESTAMP", dead_letters=False)
    customers = hp.table("customers", "customer STRING, name STRING", key="customer", dead_letters=False)


    @hp.topic("views.per_minute", key="page")
    def views_per_minute():
        counted = views.stream().withWatermark("at", "2 minutes").groupBy(F.window("at", "1 minute"), "page").count()
        return counted.select("page", F.col("window.start").alias("minute"), "count")


    @hp.topic("orders.paid", key="id")
    def paid_orders():
        o = orders.stream().withWatermark("at", "1 hour")
        p = payments.stream().withWatermark("paid", "1 hour")
        return o.join(p, F.expr("id = order AND paid BETWEEN at AND at + INTERVAL 1 HOUR")).select("id", "customer", "paid")


    @hp.topic("orders.named", key="id")
    def named_orders():
        return orders.stream().join(customers.read(), "customer").select("id", "name")


    class Running(StatefulProcessor):
        def init(self, handle):
            self._count = handle.getValueState("count", "n BIGINT")

        def handleInputRows(self, key, rows, timerValues):
            seen = self._count.get()[0] if self._count.exists() else 0
            for batch in rows:
                seen += len(batch)
            self._count.update((seen,))
            yield pd.DataFrame({"customer": [key[0]], "orders": [seen]})

        def close(self):
            pass


    @hp.table("orders.counted", key="customer")
    def counted_orders():
        return (
            orders.stream()
            .groupBy("customer")
            .transformWithStateInPandas(Running(), "customer STRING, orders BIGINT", "Update", "ProcessingTime")
        )
"""


def at(minute, second=0):
    return f"2026-01-01T10:{minute:02}:{second:02}Z"


def test_windows_joins_and_state_go_on_over_several_runs(write_project, run_once, cluster):
    root = write_project({"flows.py": FLOWS}, "streams")
    cluster.create("views", "orders", "payments")
    cluster.create("customers", **{"cleanup.policy": "compact"})
    cluster.send("customers", {"customer": "ada", "name": "Ada"}, key="ada")
    cluster.send("customers", {"customer": "bob", "name": "Bob"}, key="bob")
    # Out of order within the watermark: 10:00:30 comes after 10:01:10.
    cluster.send(
        "views", *({"page": "/", "at": moment} for moment in (at(0, 10), at(1, 10), at(0, 30), at(2, 0)))
    )
    cluster.send(
        "orders", {"id": 1, "customer": "ada", "at": at(0)}, {"id": 2, "customer": "bob", "at": at(1)}
    )
    cluster.send("payments", {"order": 2, "paid": at(5)}, {"order": 9, "paid": at(5)})
    status = run_once(root)

    assert cluster.rows("orders.paid") == [{"id": 2, "customer": "bob", "paid": "2026-01-01T10:05:00.000Z"}]
    assert sorted(row["name"] for row in cluster.rows("orders.named")) == ["Ada", "Bob"]
    assert status["views_per_minute"].state_rows == 3
    assert status["views_per_minute"].watermark == "2026-01-01T10:00:00.000Z"

    # A payment that arrives in the next run meets its order; the table has a new name and lost a customer; one view
    # is late but in time for its window, and one comes after the watermark has closed its window.
    cluster.send("payments", {"order": 1, "paid": at(10)})
    cluster.send("customers", {"customer": "ada", "name": "Ada Lovelace"}, key="ada")
    cluster.send("customers", None, key="bob")
    cluster.send(
        "orders", {"id": 3, "customer": "ada", "at": at(9)}, {"id": 4, "customer": "bob", "at": at(9)}
    )
    cluster.send("views", {"page": "/", "at": at(0, 50)}, {"page": "/", "at": at(8)})
    run_once(root)
    cluster.send("views", {"page": "/", "at": at(0, 59)}, {"page": "/", "at": at(9)})
    run_once(root)

    minutes = {row["minute"]: row["count"] for row in cluster.rows("views.per_minute")}
    assert minutes == {
        "2026-01-01T10:00:00.000Z": 3,
        "2026-01-01T10:01:00.000Z": 1,
        "2026-01-01T10:02:00.000Z": 1,
    }
    assert sorted(row["id"] for row in cluster.rows("orders.paid")) == [1, 2]
    named = {row["id"]: row["name"] for row in cluster.rows("orders.named")}
    assert named == {1: "Ada", 2: "Bob", 3: "Ada Lovelace"}
    latest = {row["customer"]: row["orders"] for row in cluster.rows("orders.counted")}
    assert latest == {"ada": 2, "bob": 2}
