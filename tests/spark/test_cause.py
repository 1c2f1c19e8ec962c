"""What Spark says when a data source of ours or a user's function fails, cut down to the sentence that tells why."""

import uuid

import pytest

from headrace.pipelines.spark_errors import sentence
from headrace.streaming.cause import cause_in

PLANNING = """[STREAM_FAILED] Query [id = 1b, runId = 51] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform {step}: Traceback (most recent call last):
  File "/spark/python/lib/pyspark.zip/pyspark/sql/streaming/python_streaming_source_runner.py", line 267, in main
  File "cluster.py", line 96, in _topic
    raise KafkaError(
headrace.wire.errors.KafkaError: The topic 'nope' does not exist on 127.0.0.1:36201; create it or correct its name.
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1b, runId = 51]
Traceback (most recent call last):
ValueError: not a part of the message
"""
BATCH = """[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: Traceback (most recent call last):
  File "cluster.py", line 271, in retry
    raise _told(what, error) from None
headrace.spark.connection.BrokerUnavailable: Could not read the cluster's metadata within 2 s
 SQLSTATE: 38000"""
WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "own.py", line 62, in read
    raise RuntimeError("no")
    ^^^^^^^^^^^^^^^^^^^^^^^^
RuntimeError: the database said no
because it is closed
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
FOREACH = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "java_gateway.py", line 2, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "runner.py", line 3, in write
py4j.protocol.Py4JJavaError: An error occurred while calling o1.save.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "sink.py", line 96, in write
headrace.wire.errors.KafkaError: The record is too large.
\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "sink.py", line 96, in write
headrace.wire.errors.KafkaError: The record is too large.

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in f
KeyError: 'total'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "a.py", line 3, in f
ValueError: the order has no total
"""
BARE = 'PythonException: Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *(
            (
                PLANNING.format(step=step),
                "The topic 'nope' does not exist on 127.0.0.1:36201; create it or correct its name.",
            )
            for step in ("initialOffset", "latestOffset", "planPartitions", "commitSource")
        ),
        (BATCH, "Could not read the cluster's metadata within 2 s"),
        (WORKER, "RuntimeError: the database said no because it is closed"),
        (FOREACH, "The record is too large."),
        (CHAINED, "ValueError: the order has no total"),
        (BARE, "ValueError"),
    ],
)
def test_the_innermost_exception_is_the_cause(text, told):
    assert str(cause_in(text)) == told


def test_without_a_traceback_there_is_no_python_cause():
    assert (
        cause_in("[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back.")
        is None
    )


def told(action):
    try:
        action()
    except Exception as error:
        return sentence(error)
    raise AssertionError("it did not fail")


@pytest.mark.timeout(1200)
def test_real_failures_are_told_with_their_cause(spark, bootstrap, make_topic, produce, tmp_path):
    from pyspark.sql.functions import udf

    from headrace.spark import register

    register(spark)
    topic = make_topic()
    produce(topic, [b"no JSON"])
    missing = f"missing-{uuid.uuid4().hex[:8]}"

    def batch(name, server=bootstrap):
        options = {"kafka.bootstrap.servers": server, "kafka.default.api.timeout.ms": "3000"}
        return spark.read.format("headrace").options(**options).option("subscribe", name).load()

    def run(name):
        rows = spark.readStream.format("headrace").option("kafka.bootstrap.servers", bootstrap)
        writer = rows.option("subscribe", name).load().writeStream.format("noop")
        query = writer.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
        query.awaitTermination()

    @udf("string")
    def failing(value):
        raise ValueError("this is no order")

    gone = f"The topic '{missing}' does not exist on {bootstrap}; create it or correct its name."
    assert told(lambda: batch(missing).collect()) == gone
    assert told(lambda: run(missing)) == gone
    away = told(lambda: batch(topic, "127.0.0.1:1").collect())
    assert away.startswith("Could not read the cluster's metadata within 3 s")
    assert "the broker at 127.0.0.1:1 cannot be reached" in away
    parsed = "from_json(CAST(value AS STRING), 'id BIGINT', map('mode', 'FAILFAST')) AS order"
    malformed = told(lambda: batch(topic).selectExpr(parsed).collect())
    assert malformed.startswith("Malformed records are detected in record parsing")
    assert told(lambda: batch(topic).select(failing("value")).collect()) == "ValueError: this is no order."
