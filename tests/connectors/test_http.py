"""Polling and webhooks against a real HTTP server: cursors, pages, refusals, a receiver that comes and goes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from headrace.connectors import ConfigError, ConnectorError, Unavailable
from headrace.connectors.delivery import DeliveryTask
from headrace.connectors.topic import RunSettings, TopicIn
from headrace.connectors.waiting import Waiting, waits_because

FIELDS = [("value", pa.string())]


class Server(ThreadingHTTPServer):
    """Remembers requests; ``answer(method, path, query, body)`` gives status and document."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests = []
        self.answer = lambda *_: (200, {})
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = urlsplit(self.path)
        self.server.requests.append((dict(self.headers), body))
        status, document, *headers = self.server.answer(self.command, parts.path, parse_qs(parts.query), body)
        data = json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = serve

    def log_message(self, *_):
        pass


@pytest.fixture
def server(serving):
    return serving(Server())


def values(count, first=0):
    return [{"value": f"v{number}"} for number in range(first, first + count)]


def test_records_are_posted_in_order_with_a_key_that_stays_the_same(declared, server, chunk, writing):
    hook = {"type": "webhook", "url": server.url, "headers": {"X-Shop": "7"}}
    for _ in range(2):  # the second time as after a crash
        writing(declared(sink=hook), chunk(5, values(2), schema=FIELDS, keys=[b"k", None]))
    headers, body = server.requests[0]
    assert body == b'{"value":"v0"}'
    assert headers["Idempotency-Key"] == "connector/orders/0/5"
    assert (headers["X-Shop"], headers["Headrace-Key"], headers["Headrace-Offset"]) == ("7", "k", "5")
    keys = [headers["Idempotency-Key"] for headers, _ in server.requests]
    assert keys[:2] == keys[2:] == ["connector/orders/0/5", "connector/orders/0/6"]


@pytest.mark.parametrize(
    ("format", "kind", "body"),
    [
        ("array", "application/json", b'[{"value":"v0"},{"value":"v1"}]'),
        ("ndjson", "application/x-ndjson", b'{"value":"v0"}\n{"value":"v1"}\n'),
    ],
)
def test_several_records_may_travel_together(declared, server, chunk, writing, format, kind, body):
    writing(
        declared(sink={"type": "webhook", "url": server.url, "batch": 2, "format": format}),
        chunk(0, values(3), schema=FIELDS),
    )
    assert server.requests[0][0]["Content-Type"] == kind
    assert server.requests[0][1] == body
    assert [headers["Idempotency-Key"] for headers, _ in server.requests] == [
        "connector/orders/0/0-1",
        "connector/orders/0/2",
    ]


def test_a_receiver_that_is_busy_gets_the_record_later_and_in_order(declared, server, chunk, arriving):
    answers = iter([(200, {}), (429, {}, ("Retry-After", "0")), (503, {}), (200, {}), (200, {})])
    server.answer = lambda *_: next(answers)
    task = DeliveryTask(
        declared(sink={"type": "webhook", "url": server.url}),
        TopicIn(name=("orders",)),
        RunSettings(),
        Waiting(None),
    )
    (done,) = task([arriving(chunk(0, values(3), schema=FIELDS))])
    assert done["rows"].to_pylist() == [3]
    assert [headers["Headrace-Offset"] for headers, _ in server.requests] == ["0", "1", "1", "1", "2"]


def test_who_waits_for_a_receiver_says_so_until_it_answers(
    declared, server, chunk, arriving, eventually, tmp_path
):
    server.answer = lambda *_: (503, {})
    waiting = tmp_path / "waiting"
    sink = declared(sink={"type": "webhook", "url": server.url})
    task = DeliveryTask(sink, TopicIn(name=("orders",)), RunSettings(), Waiting(waiting))
    worker = threading.Thread(target=lambda: list(task([arriving(chunk(0, values(1), schema=FIELDS))])))
    worker.start()
    eventually(lambda: waits_because(waiting) is not None)
    assert str(waits_because(waiting)).endswith("answers 503")
    server.answer = lambda *_: (200, {})
    worker.join(120)
    assert not worker.is_alive()
    assert waits_because(waiting) is None


def test_a_wait_that_cannot_be_noted_does_not_end_the_delivery(declared, server, chunk, arriving, tmp_path):
    answers = iter([(503, {}), (200, {})])
    server.answer = lambda *_: next(answers)
    waiting = tmp_path / "waiting"
    waiting.touch()  # so that there can be no directory
    sink = declared(sink={"type": "webhook", "url": server.url})
    task = DeliveryTask(sink, TopicIn(name=("orders",)), RunSettings(), Waiting(waiting))
    (done,) = task([arriving(chunk(0, values(1), schema=FIELDS))])
    assert done["rows"].to_pylist() == [1]


def test_a_note_that_cannot_be_removed_does_not_end_the_delivery(tmp_path):
    waiting = Waiting(tmp_path / "waiting")
    waiting.begin("the receiver is away", 1)
    [note] = (tmp_path / "waiting").iterdir()
    note.unlink()
    note.mkdir()  # which cannot be unlinked
    waiting.end()
    waiting.begin("the receiver is away again", 1)
    assert len(list((tmp_path / "waiting").iterdir())) == 2


def test_a_receiver_that_stays_away_ends_the_connector_with_a_sentence(declared, server, chunk, arriving):
    server.answer = lambda *_: (500, {})
    task = DeliveryTask(
        declared(sink={"type": "webhook", "url": server.url}),
        TopicIn(name=("orders",)),
        RunSettings(retry_for=0.3),
        Waiting(None),
    )
    with pytest.raises(ConnectorError, match=r"answers 500; given up after 0.3 s \(run.retry_for\)"):
        list(task([arriving(chunk(0, values(1), schema=FIELDS))]))


def test_what_the_receiver_refuses_becomes_a_dead_letter_and_the_rest_goes_on(
    declared, server, chunk, arriving, bootstrap, new_topic, read_all
):
    server.answer = lambda method, path, query, body: (400, {"error": "no"}) if b"v1" in body else (200, {})
    topic = new_topic()
    kind = TopicIn(name=(topic,), bootstrap=bootstrap, on_error="dead-letter")
    task = DeliveryTask(
        declared(sink={"type": "webhook", "url": server.url}), kind, RunSettings(), Waiting(None)
    )
    list(task([arriving(chunk(0, values(3), schema=FIELDS, topic=topic))]))
    assert [body for _, body in server.requests] == [b'{"value":"v0"}', b'{"value":"v1"}', b'{"value":"v2"}']
    (letter,) = read_all(topic + ".dlq")
    assert letter.value == b'{"value":"v1"}'
    assert b"the webhook answered 400" in letter.header("headrace.dlq.reason")
    assert letter.header("headrace.dlq.offset") == b"1"


def test_new_records_are_asked_for_by_a_cursor_page_by_page(declared, server, polled):
    store = [{"id": number} for number in range(1, 8)]

    def answer(method, path, query, body):
        after = int(query.get("after", ["0"])[0])
        found = [record for record in store if record["id"] > after]
        more = f"/api?after={found[2]['id']}" if len(found) > 3 else None
        return 200, {"data": {"items": found[:3]}, "next": more}

    server.answer = answer
    source = declared(
        source={
            "type": "http-poll",
            "url": f"{server.url}/api",
            "records": "data.items",
            "next": "next",
            "cursor_field": "id",
            "cursor_param": "after",
        }
    )
    rows, at = polled(source)
    assert rows == store
    store.append({"id": 8})
    until = source.latest(at)
    store.append({"id": 9})  # after the batch was planned: it belongs to the next one
    assert list(source.rows(at, until)) == [{"id": 8}]
    assert polled(source, until)[0] == [{"id": 9}]


def test_without_a_cursor_each_new_answer_is_taken_as_it_was_seen(declared, server, polled):
    state = {"temperature": 20}
    server.answer = lambda *_: (200, dict(state))
    source = declared(source={"type": "http-poll", "url": server.url})
    at = source.start()
    until = source.latest(at)
    state["temperature"] = 21
    assert list(source.rows(at, until)) == [{"temperature": 20}]
    assert polled(source, until)[0] == [{"temperature": 21}]
    assert source.latest(polled(source, until)[1]) == polled(source, until)[1]


def test_an_api_that_answers_otherwise_is_told(declared, server):
    source = declared(source={"type": "http-poll", "url": server.url, "records": "items"})
    with pytest.raises(ConnectorError, match=r"has no JSON objects at source.records"):
        source.check()
    server.answer = lambda *_: (404, {})
    with pytest.raises(ConnectorError, match=r"answered 404: check source.url"):
        source.check()
    server.answer = lambda *_: (503, {}, ("Retry-After", "7"))
    with pytest.raises(Unavailable, match="answers 503") as later:
        source.check()
    assert later.value.retry_after == 7
    with pytest.raises(ConfigError, match=r"source.cursor_field and cursor_param belong together"):
        declared(source={"type": "http-poll", "url": server.url, "cursor_field": "id"})


@pytest.mark.timeout(900)
def test_an_api_goes_through_a_topic_to_a_webhook(run, new_topic, server, read_all):
    server.answer = lambda method, *_: (200, [{"id": n} for n in range(50)] if method == "GET" else {})
    topic = new_topic()
    assert run("poll", {"name": topic, "key": "id"}, source={"type": "http-poll", "url": server.url}) is None
    assert [record.key for record in read_all(topic)] == [b"%d" % n for n in range(50)]
    server.requests.clear()
    assert run("hook", {"name": topic}, sink={"type": "webhook", "url": server.url}) is None
    assert [json.loads(body)["id"] for _, body in server.requests] == list(range(50))
