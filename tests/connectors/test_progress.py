"""Why a query failed, in a sentence taken from the layers of Java and Python around it."""

import pytest

from headrace.connectors.progress import Tally
from headrace.streaming.spark_errors import reason

OURS = """[STREAM_FAILED] Query [id = a, runId = b] terminated with exception: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "foreach_batch.py", line 1, in call
    raise e
py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times (TID 1): org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "delivery.py", line 1, in _write
headrace.connectors.errors.ConnectorError: orders cannot deliver the record in t-0 at offset 3: no; fix the cause
	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
headrace.connectors.errors.ConnectorError: orders cannot deliver the record in t-0 at offset 3: no; fix the cause
"""
KILLED = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
	at org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting 'x' to 'true'
	at org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
Caused by: java.io.EOFException
=== Streaming Query ===
Identifier: to-sql [id = a, runId = b]
Current Committed Offsets: {}
"""
THEIRS = """Traceback (most recent call last):
  File "own.py", line 9, in write
KeyError: 'total'
	at org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
Caused by: org.apache.spark.SparkException: something
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (OURS, "orders cannot deliver the record in t-0 at offset 3: no; fix the cause"),
        (KILLED, "Python worker exited unexpectedly (crashed)"),
        (THEIRS, "KeyError: 'total'"),
        ("One line only", "One line only"),
        ("", "Spark gave no reason"),
    ],
)
def test_the_innermost_sentence_is_found(text, sentence):
    assert reason(text) == sentence


def test_rows_are_counted_once_however_often_spark_reports_a_batch():
    def batch(second, number, rows):
        moment = f"2026-11-16T10:00:{second:02}.000Z"
        took = {"triggerExecution": 2000}
        return {"batchId": number, "numInputRows": rows, "durationMs": took, "timestamp": moment}

    tally = Tally()
    facts = tally.update([batch(0, 0, 50), batch(2, 1, 30)])
    assert (facts["rows"], facts["rows_per_second"]) == (80, 20.0)
    facts = tally.update([batch(2, 1, 30), batch(4, 2, 40), batch(6, 3, 0)])
    assert (facts["rows"], facts["batch"], facts["rows_per_second"]) == (120, 2, 15.0)
    # What was long ago has nothing to do with how fast it is now.
    facts = tally.update([batch(28, 3, 0)])
    assert (facts["rows"], facts["batch"], facts["rows_per_second"]) == (120, 2, 0.0)
