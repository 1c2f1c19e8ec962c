"""What Spark says when a flow fails, as a run understands it."""

import pytest

from headrace.pipelines.spark_errors import sentence
from headrace.streaming.spark_errors import is_transient


@pytest.mark.parametrize(
    "said",
    [
        "BrokerUnavailable: the broker at 127.0.0.1:9092 cannot be reached",
        "KafkaError: The transactions of batch 7 were aborted before they could be committed, most likely because …",
        "KafkaError: Another attempt of this task took over its transaction headrace-spark-1, or it was open for …",
    ],
)
def test_a_flow_whose_batch_can_be_repeated_is_started_again(said):
    assert is_transient(RuntimeError(said))


def test_a_flow_that_would_fail_again_is_not_started_again():
    assert not is_transient(RuntimeError("ArithmeticException: Division by zero."))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The disk is full.", "The disk is full."),
        (
            "Python worker failed to connect back.",
            "Spark did not get one of its Python processes started within the 10 s it allows: this machine is too busy.",
        ),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", "Division by zero."),
    ],
)
def test_a_query_that_ended_is_told_by_its_cause_and_not_by_its_id(said, told):
    from pyspark.errors import StreamingQueryException

    whole = f"[STREAM_FAILED] Query [id = 5c, runId = 2b] terminated with exception: {said} SQLSTATE: XXKST"
    assert sentence(StreamingQueryException(whole)) == told
