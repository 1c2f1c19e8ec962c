"""A stream's batches are written once to Apache Kafka, too, in both generations of its transaction protocol.

These are the sink's own tests (tests/spark/test_sink_commit.py), which speak to a broker over the wire only.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.systems import Kafka

_ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("sink_commit", _ROOT / "tests/spark/test_sink_commit.py")
assert _spec is not None
assert _spec.loader is not None
_commit = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_commit)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    settings = {"transaction.state.log.num.partitions": "1"}
    with Kafka().start(tmp_path_factory.mktemp("kafka") / "data", settings) as running:
        yield SimpleNamespace(bootstrap=running.address)


protocol, job, drivers = _commit.protocol, _commit.job, _commit.drivers

test_killed_drivers = _commit.test_a_driver_killed_at_any_request_loses_and_doubles_nothing
test_two_runs_at_once = _commit.test_of_two_runs_that_commit_the_same_batch_at_once_one_wins
test_left_overs = _commit.test_what_dead_tasks_left_open_is_aborted_by_the_next_commit
test_left_overs_without_rows = _commit.test_what_a_dead_run_left_open_is_aborted_by_a_batch_without_rows
test_stopped = _commit.test_of_a_query_that_was_stopped_the_recorded_batch_is_committed_and_the_rest_aborted
test_expired = _commit.test_a_recorded_list_that_has_expired_whole_is_replaced
test_torn = _commit.test_a_recorded_list_of_which_a_part_expired_is_told_and_not_guessed
test_without_rows = _commit.test_a_batch_that_was_recorded_stands_although_it_comes_again_without_rows
