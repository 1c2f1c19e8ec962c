"""Typed topics: columns in and out, expectations, dead letters, formats."""

import io
import json
from decimal import Decimal

import fastavro
import pytest

from headrace.client import Admin, DeadLetterBox, Producer

ORDERS = """
    from headrace import pipelines as hp

    orders = hp.topic(
        "orders",
        "id BIGINT, customer STRING, amount DOUBLE",
        expect=[
            hp.expect("a positive amount", "amount > 0"),
            hp.expect("a customer", "customer IS NOT NULL", otherwise="drop"),
            hp.expect("a small id", "id < 1000", otherwise="keep"),
        ],
    )

    @hp.topic("orders.large", key="customer", expect=[hp.expect("no hoarding", "amount < 9000")])
    def large_orders():
        return orders.stream().where("amount >= 100")

    @hp.table("spending", key="customer", delete="total > 1000")
    def spending():
        return orders.stream().groupBy("customer").sum("amount").toDF("customer", "total")
"""


def order(number, customer, amount):
    return {"id": number, "customer": customer, "amount": amount}


def header(record, name):
    value = record.header(f"headrace.dlq.{name}")
    return None if value is None else value.decode()


def test_rows_are_sorted_by_what_is_expected_of_them(write_project, run_once, cluster):
    cluster.create("orders", partitions=2)
    cluster.send(
        "orders",
        order(1, "ada", 120.0),
        order(2, "bob", 80.0),
        order(3, "ada", -5.0),
        order(4, None, 500.0),
        order(5000, "bob", 40.0),
        order(6, "eve", 10_000.0),
        b"not an order",
        b'{"id": "seven"}',
        b"[8]",
        key=b"k",
    )
    status = run_once(write_project({"orders.py": ORDERS}))

    # Decoded, filtered, keyed.
    assert cluster.rows("orders.large") == [order(1, "ada", 120.0)]
    assert [record.raw_key for record in cluster.records("orders.large")] == [b"ada"]

    # A table keeps what is latest by key, and a deleting condition leaves a tombstone.
    latest = {record.raw_key: record.raw_value for record in cluster.records("spending")}
    assert latest == {
        b"ada": b'{"customer":"ada","total":120.0}',
        b"bob": b'{"customer":"bob","total":120.0}',
        b"eve": None,
    }
    with Admin(cluster.bootstrap) as admin:
        assert admin.topic_config("spending")["cleanup.policy"] == "compact"

    # One letter for each bad record, although two flows read the topic, with reason and origin.
    letters = cluster.records("orders.dlq")
    assert sorted(letter.raw_value for letter in letters) == sorted(
        [b'{"id": 3, "customer": "ada", "amount": -5.0}', b"not an order", b'{"id": "seven"}', b"[8]"]
    )
    reasons = {letter.raw_value: header(letter, "reason") for letter in letters}
    assert reasons[b"not an order"] == "the value is not a JSON object"
    assert (
        reasons[b'{"id": 3, "customer": "ada", "amount": -5.0}'] == "expected a positive amount: amount > 0"
    )
    assert "id:bigint" in reasons[b'{"id": "seven"}']
    origins = {
        (header(letter, "topic"), header(letter, "partition"), header(letter, "offset")) for letter in letters
    }
    places = {
        ("orders", str(record.partition), str(record.offset))
        for record in cluster.records("orders")
        if record.raw_value in reasons
    }
    assert origins == places
    assert all(letter.raw_key == b"k" for letter in letters)
    with DeadLetterBox("orders.dlq", cluster.bootstrap) as box:
        assert box.count() == 4

    # A row that the output does not want goes to the output's own letters.
    [letter] = cluster.records("orders.large.dlq")
    assert header(letter, "reason") == "expected no hoarding: amount < 9000"
    assert header(letter, "topic") == "orders.large"

    # And all of it is counted.
    assert status["orders_dead_letters"].dead_letters == 4
    assert status["large_orders"].dead_letters == 1
    assert (status["large_orders"].dropped, status["large_orders"].kept) == (1, 1)
    assert status["large_orders"].rows_in == 9
    assert status["large_orders"].lag_rows == 0


def test_the_latest_row_of_a_key_is_found_after_partitions_were_added(
    write_project, run_once, cluster, spark
):
    cluster.create("stock", **{"cleanup.policy": "compact"})

    def put(partition, time, **pieces):
        with Producer(cluster.bootstrap) as producer:
            for item, count in pieces.items():
                value = None if count is None else json.dumps({"item": item, "pieces": count}).encode()
                producer.send("stock", value, key=item.encode(), partition=partition, timestamp=time)

    put(0, 2_000, moved=1, gone=1, stays=1, tied=1, backwards=1)
    put(0, 1_000, backwards=2)  # whatever the clocks say, in one partition the later offset is the later row
    with Admin(cluster.bootstrap) as admin:
        admin.add_partitions("stock", 2)
    put(1, 2_000, tied=2)  # the offsets begin anew
    put(1, 3_000, moved=2, gone=None)
    put(1, 3_000, stays=2)
    put(0, 4_000, stays=3)  # by a producer that had not heard of the new partition
    root = write_project(
        {
            "stock.py": """
            from headrace import pipelines as hp
            from pyspark import pipelines as dp

            stock = hp.table("stock", "item STRING, pieces BIGINT", key="item", dead_letters=False)

            @dp.materialized_view
            def stock_now():
                return stock.read()
            """
        },
        "stocktaking",
    )
    run_once(root)
    assert dict(spark.table("stock_now").collect()) == {"moved": 2, "stays": 3, "tied": 2, "backwards": 2}


def test_an_expectation_may_stop_the_pipeline(write_project, run_once, cluster):
    from headrace.pipelines.runner import FlowFailed

    cluster.create("payments")
    cluster.send("payments", {"id": 1}, {"id": None})
    root = write_project(
        {
            "payments.py": """
            from headrace import pipelines as hp

            payments = hp.topic("payments", "id BIGINT", expect=[hp.expect("an id", "id IS NOT NULL", otherwise="fail")])

            @hp.topic("payments.seen")
            def seen():
                return payments.stream()
            """
        },
        "payments",
    )
    with pytest.raises(
        FlowFailed, match=r"Flow 'seen' failed: A row stopped the flow: expected an id: id IS NOT NULL\."
    ):
        run_once(root)


def test_every_format_is_read_and_written(write_project, run_once, cluster):
    from google.protobuf.timestamp_pb2 import Timestamp

    schema = {
        "type": "record",
        "name": "Reading",
        "fields": [
            {"name": "sensor", "type": "string"},
            {"name": "celsius", "type": ["null", "double"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }

    def avro(**values):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, values)
        return out.getvalue()

    readings = [
        avro(sensor="a", celsius=21.5, at=1_700_000_000_000, tags=["x", "y"]),
        avro(sensor="b", celsius=None, at=1_700_000_000_001, tags=[]),
    ]
    moments = [Timestamp(seconds=17, nanos=5).SerializeToString(), Timestamp(seconds=18).SerializeToString()]
    cluster.create("readings", "moments", "lines", "blobs")
    cluster.send("readings", *readings, b"\x02")
    cluster.send("moments", *moments, b"\x0a\xff")
    cluster.send("lines", "grüße".encode(), b"\xff\xfe")
    cluster.send("blobs", b"\x00\xff")
    root = write_project(
        {
            "formats.py": f"""
            from google.protobuf.timestamp_pb2 import Timestamp
            from headrace import pipelines as hp

            SCHEMA = {schema!r}

            readings = hp.topic("readings", SCHEMA, format="avro")
            moments = hp.topic("moments", Timestamp, format="protobuf")
            lines = hp.topic("lines", format="string")
            blobs = hp.topic("blobs", format="bytes")

            @hp.topic("readings.out", SCHEMA, format="avro", key=("sensor", "at"))
            def readings_out():
                return readings.stream()

            @hp.topic("readings.json")
            def readings_json():
                return readings.stream()

            @hp.topic("moments.out", Timestamp, format="protobuf", key="seconds")
            def moments_out():
                return moments.stream()

            @hp.topic("lines.out", format="string")
            def lines_out():
                return lines.stream()

            @hp.topic("blobs.out", format="bytes")
            def blobs_out():
                return blobs.stream()

            @hp.topic("derived", format="avro")
            def derived():
                return moments.stream().selectExpr("seconds AS s", "CAST(seconds AS STRING) AS text")

            @hp.topic("derived.again")
            def derived_again():
                return derived.stream()
            """
        },
        "formats",
    )
    run_once(root)

    assert [record.raw_value for record in cluster.records("readings.out")] == readings
    assert cluster.records("readings.out")[0].raw_key == b'{"sensor":"a","at":"2023-11-14T22:13:20.000Z"}'
    assert cluster.rows("readings.json")[0] == {
        "sensor": "a",
        "celsius": 21.5,
        "at": "2023-11-14T22:13:20.000Z",
        "tags": ["x", "y"],
    }
    assert [record.raw_value for record in cluster.records("moments.out")] == moments
    assert [record.raw_key for record in cluster.records("moments.out")] == [b"17", b"18"]
    assert [record.raw_value for record in cluster.records("lines.out")] == ["grüße".encode()]
    assert [record.raw_value for record in cluster.records("blobs.out")] == [b"\x00\xff"]
    assert cluster.rows("derived.again") == [{"s": 17, "text": "17"}, {"s": 18, "text": "18"}]
    letters = {
        name: [letter.raw_value for letter in cluster.records(f"{name}.dlq")]
        for name in ("readings", "moments", "lines")
    }
    assert letters == {"readings": [b"\x02"], "moments": [b"\x0a\xff"], "lines": [b"\xff\xfe"]}


def test_avro_types_without_a_column_of_their_own_pass_through_and_what_fits_no_column_is_a_dead_letter(
    write_project, run_once, cluster
):
    schema = {
        "type": "record",
        "name": "Transfer",
        "fields": [
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "at", "type": ["null", {"type": "int", "logicalType": "time-millis"}]},
            {
                "name": "sum",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            },
            {"name": "notes", "type": {"type": "map", "values": ["null", "string"]}},
        ],
    }
    wider = {**schema, "fields": [dict(each) for each in schema["fields"]]}
    wider["fields"][2]["type"] = {**schema["fields"][2]["type"], "precision": 9}

    def avro(amount, notes, written=schema):
        out = io.BytesIO()
        values = {
            "id": "8f14e45f-ceea-467f-a8f4-7d3b0b4f5d2a",
            "at": 5,
            "sum": Decimal(amount),
            "notes": notes,
        }
        fastavro.schemaless_writer(out, written, values)
        return out.getvalue()

    sent = [avro("12.50", {"by": "ada", "to": None}), avro("0.01", {})]
    too_much = avro("1234567.89", {}, wider)
    cluster.create("transfers")
    cluster.send("transfers", *sent, too_much)
    root = write_project(
        {
            "transfers.py": f"""
            from headrace import pipelines as hp

            SCHEMA = {schema!r}
            transfers = hp.topic("transfers", SCHEMA, format="avro")

            @hp.topic("transfers.out", SCHEMA, format="avro")
            def transfers_out():
                return transfers.stream()
            """
        },
        "transfers",
    )
    run_once(root)
    assert [record.raw_value for record in cluster.records("transfers.out")] == sent
    assert [letter.raw_value for letter in cluster.records("transfers.dlq")] == [too_much]


def test_what_others_write_into_a_topic_of_the_pipeline_and_cannot_be_decoded_is_counted(
    write_project, run_once, cluster
):
    flows = """
        from headrace import pipelines as hp

        numbers = hp.topic("chain.numbers", "n BIGINT", partitions=1)

        @hp.topic("chain.doubled")
        def doubled():
            return numbers.stream().selectExpr("2 * n AS n")

        @hp.topic("chain.fourfold")
        def fourfold():
            return doubled.stream().selectExpr("2 * n AS n")
    """
    cluster.create("chain.numbers", "chain.doubled")
    cluster.send("chain.numbers", {"n": 1})
    cluster.send("chain.doubled", b"not a number", {"n": 5})
    status = run_once(write_project({"flows.py": flows}, "chain"))
    assert sorted(row["n"] for row in cluster.rows("chain.fourfold")) == [4, 10]
    assert status["fourfold"].dropped == 1
