"""The project that `headrace pipeline new` writes: small, working, and meant to be changed."""

from __future__ import annotations

from pathlib import Path

from headrace.pipelines.errors import PipelineError
from headrace.pipelines.project import SPEC_FILES

_SPEC = """\
# Spark's own pipeline spec: 'headrace pipeline run' and 'spark-pipelines run' both read it.
name: {name}
storage: {storage}
configuration:
  spark.headrace.bootstrap.servers: 127.0.0.1:9092
libraries:
  - glob:
      include: transformations/**
"""

_TOPICS = '''\
"""The topics of this pipeline and what their values look like."""

from headrace import pipelines as hp

orders = hp.topic(
    "orders",
    "id BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP",
    partitions=3,
    expect=[hp.expect("a positive amount", "amount > 0")],
)
'''

_PYTHON = (
    _TOPICS
    + '''

@hp.topic("orders.large", key="customer")
def large_orders():
    """Orders worth a second look."""
    return orders.stream().where("amount >= 100")


@hp.table("spending", key="customer")
def spending():
    """What each customer has spent so far: a table, so each key keeps its latest row."""
    return orders.stream().groupBy("customer").agg({"amount": "sum"}).withColumnRenamed("sum(amount)", "total")
'''
)

_SQL_TOPICS = (
    _TOPICS
    + """
hp.topic("orders.large", "id BIGINT, customer STRING, amount DOUBLE", key="customer")
"""
)

_SQL = """\
-- Orders worth a second look. A topic is read and written by its name, with _ for what SQL does not take.
CREATE FLOW large_orders AS INSERT INTO orders_large BY NAME
SELECT id, customer, amount FROM STREAM orders WHERE amount >= 100;
"""

_README = """\
# {name}

    headrace up                # a broker, in another terminal
    headrace pipeline check
    headrace pipeline run      # creates the topics that are missing

and beside it:

    echo '{{"id": 1, "customer": "ada", "amount": 120.0, "at": "2026-01-01T10:00:00Z"}}' | headrace produce orders
    headrace consume orders.large --from-beginning
    echo 'not an order' | headrace produce orders
    headrace dlq list orders.dlq
"""


def write_project(root: Path, *, sql: bool) -> list[Path]:
    """Write the files; they are returned."""
    if not root.name.replace("-", "").replace("_", "").isalnum():
        raise PipelineError(f"A project is named with letters, digits, - and _, not '{root.name}'.")
    if root.exists():
        raise PipelineError(f"'{root.name}' exists already; choose another name.")
    code = {"transformations/topics.py": _SQL_TOPICS, "transformations/flows.sql": _SQL}
    if not sql:
        code = {"transformations/orders.py": _PYTHON}
    files = {
        SPEC_FILES[0]: _SPEC.format(name=root.name, storage=(root / "storage").as_uri()),
        **code,
        "README.md": _README.format(name=root.name),
        ".gitignore": "storage/\n.headrace/\n__pycache__/\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [root / name for name in files]
