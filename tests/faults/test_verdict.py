"""The campaign's verdict finds what it is for: each kind of broken promise, put into the evidence by hand."""

from types import SimpleNamespace

import pytest

from faults import checks
from faults.catalogue import CATALOGUE, chosen
from faults.load import LEDGER, TRANSFERS, Acknowledged, Deliveries
from faults.segments import Replica, read_replica
from headrace.testing.wire import batch
from headrace.wire.batch import assign

PLACE = (LEDGER, 0)


def log_of(*names):
    return Replica(records=dict(enumerate(names)), end=len(names))


def writer(*acknowledged):
    told = {name: Acknowledged(PLACE, offset, 0.0) for offset, name in enumerate(acknowledged)}
    return SimpleNamespace(sent=set(acknowledged), acknowledged=told, twice=[])


def read(place, **at):
    deliveries = Deliveries()
    for offset, name in at.items():
        deliveries.seen[place][int(offset[1:])] = name
    return SimpleNamespace(name="reader", deliveries=deliveries)


def test_a_sound_history_has_no_problems():
    logs = {PLACE: log_of("w 0 0", "w 0 1")}
    writers = [writer("w 0 0", "w 0 1")]
    assert checks.nothing_lost(writers, logs) == []
    assert checks.nothing_twice(writers, logs) == []
    assert checks.in_order(logs) == []
    assert checks.readers_agree([read(PLACE, o0="w 0 0")], logs) == []


def test_an_acknowledged_record_that_is_not_at_its_offset_is_lost():
    (problem,) = checks.nothing_lost([writer("w 0 0", "w 0 1")], {PLACE: log_of("w 0 0")})
    assert "'w 0 1' acknowledged at ledger-0 offset 1" in problem


def test_a_record_twice_and_a_record_from_nowhere_are_found():
    problems = checks.nothing_twice([writer("w 0 0")], {PLACE: log_of("w 0 0", "w 0 0", "x 0 0")})
    assert [problem.split(" (")[0] for problem in problems] == [
        "records are in the log twice",
        "records nobody sent are in the log",
    ]


def test_a_record_acknowledged_without_an_offset_must_be_somewhere():
    told = SimpleNamespace(acknowledged={"w 0 1": Acknowledged(PLACE, -1, 0.0)})
    assert checks.nothing_lost([told], {PLACE: log_of("w 0 0", "w 0 1")}) == []
    assert checks.nothing_lost([told], {PLACE: log_of("w 0 0")})


@pytest.mark.parametrize(("in_flight", "epoch", "excused"), [(5, 1, 1), (5, 0, 0), (1, 1, 0)])
def test_only_what_a_pipelining_client_repeats_in_a_new_epoch_is_excused(in_flight, epoch, excused):
    replica = log_of("w 0 0", "w 0 1", "w 0 1", "w 0 2")
    replica.producer_epochs = {0: 0, 1: 0, 2: epoch, 3: epoch}
    cleared, repeats = checks.without_repeats(
        [SimpleNamespace(name="w", in_flight=in_flight)], {PLACE: replica}
    )
    assert repeats == excused
    assert bool(checks.nothing_twice([writer("w 0 0", "w 0 1", "w 0 2")], cleared)) is not bool(excused)
    assert bool(checks.in_order(cleared)) is not bool(excused)


def test_a_producers_numbers_out_of_order_are_found():
    assert checks.in_order({PLACE: log_of("w 0 1", "w 0 0")})


def test_a_record_that_was_read_and_is_gone_is_found():
    (problem,) = checks.readers_agree([read(PLACE, o1="w 0 1")], {PLACE: log_of("w 0 0")})
    assert "reader read 'w 0 1' at ledger-0 offset 1, there is None" in problem


def test_a_reader_that_missed_something_is_found():
    seen = read(PLACE, o0="w 0 0").deliveries
    assert checks.all_delivered("it", [seen], {PLACE: {0, 1}}) == [
        "it was not given everything (1): 1 of ledger-0, first 1"
    ]


@pytest.mark.parametrize(
    ("committed", "aborted", "unknown"), [({0}, set(), set()), (set(), {0}, set()), (set(), set(), {0})]
)
def test_half_a_transaction_is_torn_whatever_became_of_it(committed, aborted, unknown):
    logs = {(TRANSFERS, 0): log_of("t 0 0"), (TRANSFERS, 1): log_of("t 1 0")}
    transfers = SimpleNamespace(committed=committed, aborted=aborted, unknown=unknown)
    torn, _ = checks.transactions_whole(transfers, read((TRANSFERS, 0), o0="t 0 0").deliveries, logs)
    assert torn


def test_a_committed_offset_that_went_back_is_found():
    member = SimpleNamespace(name="member", commits={PLACE: 5})
    assert checks.commits_kept([member], {PLACE: 4})
    assert checks.commits_kept([member], {PLACE: 5}) == []


def test_replicas_that_differ_and_segments_that_are_damaged_are_found(tmp_path):
    one, other = bytearray(batch(b"w 0 0")), bytearray(batch(b"w 0 1"))
    for directory, content in (("a", one), ("b", other), ("c", one[:-1] + b"\xff")):
        assign(memoryview(content), 0, 0)
        (tmp_path / directory).mkdir()
        (tmp_path / directory / f"{0:020d}.log").write_bytes(content)
    a, b, c = (read_replica(tmp_path / name) for name in "abc")
    assert checks.identical({PLACE: {1: a, 2: a}}) == []
    assert checks.identical({PLACE: {1: a, 2: b}}) == [
        "replicas differ (1): ledger-0 on 1 and 2 from offset 0 on"
    ]
    assert any(problem.startswith("segments are broken") for problem in checks.identical({PLACE: {1: c}}))


def test_faults_are_chosen_by_group_and_by_name():
    assert set(chosen([])) == {name for faults in CATALOGUE.values() for name in faults}
    assert set(chosen(["clock", "kill-leader"])) == {"clock-jumps", "kill-leader"}
