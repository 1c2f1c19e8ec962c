"""Topics in Spark Declarative Pipelines: what Headrace adds to ``pyspark.pipelines``, and nothing else.

>>> from headrace import pipelines as hp
>>> orders = hp.topic("orders", "id BIGINT, customer STRING, amount DOUBLE")
>>> @hp.topic("orders.large", key="customer")
... def large_orders():
...     return orders.stream().where("amount > 100")
"""

from headrace.pipelines.errors import PipelineError
from headrace.pipelines.expectations import Expectation, expect
from headrace.pipelines.running import run
from headrace.pipelines.topics import Table, Topic, table, topic

__all__ = ["Expectation", "PipelineError", "Table", "Topic", "expect", "run", "table", "topic"]
