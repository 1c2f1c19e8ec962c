"""A connection that remembers its produce requests: nobody can tell, neither by the replies nor by the files of the log.

Two brokers get the same requests and the same changes; one of them is made to forget before each request.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.api import produce as produce_module
from headrace.server.config.authorization import STANDARD
from headrace.testing.broker import BrokerThread
from headrace.testing.topics import unique_name
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import add_partitions_to_txn as ap
from headrace.wire.messages import end_txn as et
from headrace.wire.messages import init_producer_id as ip
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.server.api.produce_pair import (
    CHANGES,
    CLIENTS,
    CONFIGS,
    PLAIN,
    SYNCED,
    UNDONE,
    Forgetful,
    Pair,
    Produce,
    Side,
    StoppedClock,
    allow_everything_else,
    codes_of,
)
from tests.waiting import until

KINDS = ["good"] * 8 + ["damaged", "null", "empty", "two batches", "no key"]
PRODUCES = st.builds(
    Produce,
    topic=st.sampled_from(list(CONFIGS)),
    version=st.sampled_from([3, 5, 7, 8, 9, 9, 11, 12, 13]),
    acks=st.sampled_from([-1, 1, 1, 1, 0, 2]),
    partition=st.sampled_from([0, 0, 0, 1, 5]),
    values=st.sampled_from([(b"value",), (b"", b"longer" * 20), (b"x" * 300,), tuple([b"many"] * 30)]),
    records=st.sampled_from(KINDS),
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY]),
    client=st.sampled_from(CLIENTS),
    trailing=st.sampled_from([b"", b"", b"", b"\0", b"\0\0\0"]),
)
SENT_AGAIN = st.tuples(PRODUCES, st.integers(2, 6)).map(lambda each: [each[0]] * each[1])
"""What the connection remembers only counts when it comes again."""
SENDS = st.tuples(
    st.just("send"),
    st.one_of(SENT_AGAIN, SENT_AGAIN, st.lists(PRODUCES, min_size=1, max_size=6)),
    st.sampled_from([0.0, 0.3, 0.5, 0.77, 1.0]),
)
CHANGED = st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(list(CONFIGS)), st.booleans())
STEPS = st.lists(st.one_of(SENDS, SENDS, CHANGED), min_size=4, max_size=16)


@pytest.fixture(scope="module", params=["open", "guarded"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    own = {"allow.everyone.if.no.acl.found": "true", "authorizer.class.name": STANDARD}
    shared = {"log.segment.delete.delay.ms": "0", "auto.create.topics.enable": "false"}
    configured = {**shared, **(own if request.param == "guarded" else {})}
    places = (tmp_path_factory.mktemp("side") for _ in range(2))
    first, second = (BrokerThread(place / "data", configured, StoppedClock()) for place in places)
    first.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.testing.broker.FaultyDispatcher", Forgetful)
        second.start()
    both = Pair(Side(first), Side(second))
    if request.param == "guarded":
        for side in both.sides:
            allow_everything_else(side)
    yield both
    first.stop()
    second.stop()


@given(STEPS)
@settings(max_examples=30)
def test_replies_and_files_are_those_of_the_plain_path(pair: Pair, steps: list[Any]) -> None:
    guarded = pair.remembering.broker.node.engines.guarded
    pair.begin()
    try:
        for kind, what, how in steps:
            if kind == "send":
                pair.send(*what, cut=how)
            elif kind != "deny" or guarded:
                pair.change(kind, what, how)
    finally:
        for kind in UNDONE:
            pair.change(kind, PLAIN, False)
    pair.finish()


@pytest.mark.sources("read_request")
@pytest.mark.parametrize("version", [3, 5, 7, 8, 9, 10, 11, 12, 13])
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_request_that_has_come_twice_is_not_decoded_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, version: int, acks: int
) -> None:
    pair.begin()
    decoded = []
    read = produce_module.read_request

    def counting(*args: Any) -> Any:
        decoded.append(args)
        return read(*args)

    monkeypatch.setattr(produce_module, "read_request", counting)
    partitions = [Produce(PLAIN, version, acks, partition) for partition in (0, 1)]
    assert len(pair.remembering.send(partitions * 4, 0.5)) == (8 if acks else 0)
    assert len(decoded) == 4


def test_a_remembered_request_needs_the_permission_that_it_needed_before(pair: Pair) -> None:
    if not pair.remembering.broker.node.engines.guarded:
        pytest.skip("nothing is denied here")
    pair.begin()
    step = Produce(PLAIN, 7)
    allowed = pair.send(step, step)
    pair.change("deny", PLAIN, True)
    denied = pair.send(step, step)
    pair.change("deny", PLAIN, False)
    assert codes_of(allowed, 7) == {ErrorCode.NONE}
    assert codes_of(denied, 7) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    pair.send(step, step)
    pair.finish()


def test_more_partitions_than_a_connection_remembers_are_all_served(pair: Pair) -> None:
    pair.begin()
    steps = [
        Produce(topic, version, acks, partition, client=client)
        for topic in CONFIGS
        for version in (3, 5, 8, 9, 12)
        for acks in (-1, 1)
        for partition in (0, 1)
        for client in CLIENTS
    ]
    for _ in range(2):
        assert len(pair.send(*steps)) == len(steps) == 200
    pair.finish()


def test_batches_larger_than_the_receive_buffer_are_served(pair: Pair) -> None:
    pair.begin()
    large = [Produce(PLAIN, 9, values=(bytes([each]) * 900_000,)) for each in range(3)]
    small = Produce(PLAIN, 9)
    pair.send(small, *large, small, *large, cut=0.1)
    pair.send(*large, cut=0.9)
    pair.finish()


def test_a_full_disk_refuses_them_and_takes_them_again(pair: Pair) -> None:
    pair.begin()
    step = Produce(PLAIN, 9)
    pair.send(step, step)
    for side in pair.sides:
        side.broker.disk.fill(f"{side.names[PLAIN]}-")
    assert codes_of(pair.send(step, step), 9) == {ErrorCode.KAFKA_STORAGE_ERROR}
    for side in pair.sides:
        side.broker.disk.heal()
        until(lambda side=side: codes_of(side.send([step], 1.0), 9) == {ErrorCode.NONE})
        side.numbers = itertools.count(1000)
    assert codes_of(pair.send(step, step), 9) == {ErrorCode.NONE}
    pair.finish()


def test_in_sync_mode_the_reply_waits_for_the_disk(pair: Pair) -> None:
    pair.begin()
    step = Produce(SYNCED, 9)
    assert codes_of(pair.send(step, step, step), 9) == {ErrorCode.NONE}
    for side in pair.sides:
        side.broker.disk.where, side.broker.disk.sync_error = f"{side.names[SYNCED]}-", errno.EIO
    assert codes_of(pair.send(step), 9) == {ErrorCode.KAFKA_STORAGE_ERROR}
    for side in pair.sides:
        side.broker.disk.heal()


def test_sequences_of_an_idempotent_producer_are_checked(pair: Pair) -> None:
    pair.begin()
    made = [side.ask_until_ready(ip.InitProducerIdRequest(None, 60_000), 4) for side in pair.sides]
    assert made[0] == made[1]

    def step(sequence: int, acks: int = -1) -> Produce:
        return Produce(PLAIN, 9, acks, producer=(made[0].producer_id, made[0].producer_epoch, sequence))

    in_order, again, gap = [step(each) for each in range(6)], [step(5), step(2)], [step(9), step(6)]
    assert len(pair.send(*in_order, *again, *gap)) == 10
    pair.finish()


@pytest.mark.parametrize("version", [9, 11, 12])
def test_records_of_a_transaction_are_verified_as_before(pair: Pair, version: int) -> None:
    pair.begin()
    name = unique_name("transaction")
    for side in pair.sides:
        side.ask(FindCoordinatorRequest(name, 1), 3)  # which creates the coordinators' topic
    made = [side.ask_until_ready(ip.InitProducerIdRequest(name, 60_000), 4) for side in pair.sides]
    assert made[0] == made[1]
    assert made[0].error_code == 0
    producer = (made[0].producer_id, made[0].producer_epoch)
    sequences = itertools.count()

    def write(count: int) -> set[ErrorCode]:
        steps = [
            Produce(PLAIN, version, -1, transactional_id=name, producer=(*producer, next(sequences)))
            for _ in range(count)
        ]
        return codes_of(pair.send(*steps), version)

    def end(side: Side, committed: bool) -> None:
        assert side.ask_until_ready(et.EndTxnRequest(name, *producer, committed), 3).error_code == 0

        def over() -> bool:
            states: list[bool] = []
            side.on_partitions(
                PLAIN, lambda node, each: states.append(each.log.has_ongoing_transaction(*producer))
            )
            return not any(states)

        until(over)

    for committed in (True, False):
        if version < 12:
            for side in pair.sides:
                topics = [ap.AddPartitionsToTxnTopic(side.names[PLAIN], [0])]
                request = ap.AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=producer[0],
                    v3_and_below_producer_epoch=producer[1],
                    v3_and_below_topics=topics,
                )

                def added(side: Side = side, request: Any = request) -> bool:
                    answer = side.ask(request, 3).results_by_topic_v3_and_below[0]
                    code = answer.results_by_partition[0].partition_error_code
                    return ErrorCode(code) is ErrorCode.NONE

                until(added)
        assert write(4) == {ErrorCode.NONE}
        for side in pair.sides:
            end(side, committed)
    if version < 12:
        assert ErrorCode.NONE not in write(2), "they belong to no transaction"
    pair.finish()
