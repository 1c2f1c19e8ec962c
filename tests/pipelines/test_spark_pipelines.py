"""Spark's own runner, `spark-pipelines`, over a project with Headrace's topics."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

TYPED = """
    from headrace import pipelines as hp

    orders = hp.topic("orders", "id BIGINT, customer STRING, amount DOUBLE")

    customers = hp.table("customers", "customer STRING, name STRING", key="customer")

    @hp.topic("large", "id BIGINT, customer STRING, amount DOUBLE", key="id")
    def large_orders():
        return orders.stream().where("amount >= 100")

    @hp.topic("named", key="id")
    def named_orders():
        return orders.stream().join(customers.read(), "customer")
"""

ORDERS = [{"id": 1, "customer": "ada", "amount": 50.0}, {"id": 2, "customer": "bob", "amount": 150.0}]


def spark_pipelines(root):
    """Spark's own runner, as a user starts it."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    ran = subprocess.run(
        [home / "bin" / "spark-pipelines", "run"],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]


def test_sparks_own_runner_takes_topics_tables_and_dead_letters(write_project, cluster, monkeypatch):
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", cluster.bootstrap)
    cluster.create("orders", "large", "named", "orders.dlq", "customers.dlq")
    cluster.create("customers", **{"cleanup.policy": "compact"})
    cluster.send("orders", *ORDERS, b"poison")
    cluster.send("customers", {"customer": "ada", "name": "Ada"}, key=b"ada")
    root = write_project({"orders.py": TYPED}, "typed")
    spark_pipelines(root)
    assert cluster.rows("large") == [ORDERS[1]]
    assert cluster.rows("named") == [{"customer": "ada", "id": 1, "amount": 50.0, "name": "Ada"}]
    assert [letter.raw_value for letter in cluster.records("orders.dlq")] == [b"poison"]
