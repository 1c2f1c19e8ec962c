"""The HTTP endpoint: a 2xx answer means the records are in the topic, and what it holds is bounded."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3

from headrace.connectors.config import declare

NOBODY = "127.0.0.1:1"


@pytest.fixture
def listen(bootstrap):
    """Start endpoints on ports of their own."""
    running = []

    def start(topic, *, key=(), servers=bootstrap, **settings):
        document = {
            "topic": {"name": topic, "bootstrap": servers, **({"key": key} if key else {})},
            "source": {"type": "http-endpoint", "listen": "127.0.0.1:0", **settings},
        }
        declared = declare(document, default_name="gateway")
        running.append(declared.connector.start(declared.topic))
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def post():
    pool = urllib3.PoolManager(retries=False, maxsize=20)

    def send(endpoint, body, path="/", kind="application/json", method="POST", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://{endpoint.address}{path}"
        return pool.request(method, url, body=data, headers={"content-type": kind, **names})

    yield send
    pool.clear()


def test_one_value_a_list_and_lines_are_written_before_the_answer(listen, post, new_topic, read_all):
    topic = new_topic()
    endpoint = listen(topic, key="id")
    assert post(endpoint, b' {"id": 7, "n": 1.10}').json() == {
        "topic": topic,
        "records": 1,
        "offsets": {"0": 0},
    }
    assert post(endpoint, [{"id": "a"}, {"id": "b"}]).json()["offsets"] == {"0": 2}
    assert post(endpoint, b'{"id": 8}\n\n{"id": 9}\n', kind="application/x-ndjson").json()["records"] == 2
    assert [(record.key, record.value) for record in read_all(topic)] == [
        (b"7", b'{"id": 7, "n": 1.10}'),
        (b"a", b'{"id":"a"}'),
        (b"b", b'{"id":"b"}'),
        (b"8", b'{"id": 8}'),
        (b"9", b'{"id": 9}'),
    ]


def test_a_request_header_gives_the_key_and_others_travel_along(listen, post, new_topic, read_all):
    topic, other = new_topic(), new_topic()
    endpoint = listen(topic, topics=[other], copy_headers=["X-Request-Id"])
    headers = {"Headrace-Key": "k", "X-Request-Id": "r1", "Idempotency-Key": "i"}
    assert post(endpoint, [1, 2], path=f"/topics/{other}", **headers).status == 200
    first, second = read_all(other)
    assert first.key == b"k"
    assert first.header("X-Request-Id") == b"r1"
    assert [record.header("headrace.id") for record in (first, second)] == [b"i/0", b"i/1"]
    assert read_all(topic) == []


@pytest.mark.parametrize(
    ("request_", "status", "sentence"),
    [
        ({"body": b"{"}, 400, "the body is not JSON"),
        ({"body": b'{"id": 1}\n{', "kind": "application/x-ndjson"}, 400, "line 2 is not JSON"),
        ({"body": b"x", "kind": "text/plain"}, 415, "text/plain is not taken here"),
        ({"body": {"no": "id"}}, 422, "a record has no id, which its key is made of"),
        ({"body": {"id": "x" * 2000}}, 413, "the body has 2010 bytes and may have 1000"),
        ({"body": {"id": 1}, "path": "/topics/other"}, 404, "there is nothing at /topics/other"),
        ({"body": {"id": 1}, "method": "PUT"}, 405, "PUT is not for this: use POST"),
        ({"body": {"id": 1}, "authorization": "Bearer wrong"}, 401, "the bearer token is missing or wrong"),
    ],
)
def test_a_senders_mistake_is_told_in_a_sentence_and_nothing_is_written(
    listen, post, new_topic, read_all, request_, status, sentence
):
    topic = new_topic()
    endpoint = listen(topic, key="id", max_body=1000, token="secret")
    answer = post(endpoint, **{"authorization": "Bearer secret", **request_})
    assert answer.status == status
    assert sentence in answer.json()["error"]
    assert read_all(topic) == []


def test_a_record_the_cluster_will_never_take_is_not_asked_for_again(listen, post, new_topic, read_all):
    topic = new_topic()
    answer = post(listen(topic), "x" * 1_020_000)  # within max_body, and more than a producer sends
    assert (answer.status, answer.headers.get("Retry-After")) == (413, None)
    assert "max.message.bytes" in answer.json()["error"]
    assert read_all(topic) == []


def test_a_burst_is_all_there(listen, post, new_topic, read_all):
    topic = new_topic(3)
    endpoint = listen(topic, key="id")
    with ThreadPoolExecutor(16) as senders:
        answers = list(senders.map(lambda number: post(endpoint, {"id": number}).status, range(1_000)))
    assert answers == [200] * 1_000
    assert sorted(json.loads(record.value)["id"] for record in read_all(topic)) == list(range(1_000))
    assert endpoint.facts()["rows"] == 1_000


def test_without_a_cluster_the_sender_is_asked_to_come_again(listen, post, caplog):
    endpoint = listen("nowhere", servers=NOBODY, timeout=0.5, retry_after=3)
    answer = post(endpoint, {"id": 1})
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "3"
    assert endpoint.facts()["failed"] == 1


def test_what_waits_is_bounded_and_the_rest_is_turned_away_at_once(listen, post, eventually):
    endpoint = listen("nowhere", servers=NOBODY, timeout=5, max_waiting=2)
    statuses = []
    first = [
        threading.Thread(target=lambda: statuses.append(post(endpoint, {"id": 1}).status)) for _ in range(2)
    ]
    for thread in first:
        thread.start()
    eventually(lambda: endpoint.facts()["waiting"] == 2)
    turned_away = post(endpoint, {"id": 2})
    assert turned_away.status == 429
    assert turned_away.headers["Retry-After"] == "1"
    for thread in first:
        thread.join()
    assert statuses == [503, 503]
    assert endpoint.facts()["waiting"] == 0


def test_a_sender_that_leaves_in_the_middle_leaves_nothing_behind(listen, post, new_topic, read_all):
    topic = new_topic()
    endpoint = listen(topic)
    host, _, port = endpoint.address.rpartition(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert post(endpoint, {"id": 1}).status == 200
    assert len(read_all(topic)) == 1


def test_an_address_that_is_taken_is_told(listen, new_topic):
    from headrace.connectors import ConnectorError

    taken = listen(new_topic()).address
    with pytest.raises(ConnectorError, match="that address is taken"):
        listen(new_topic(), listen=taken)
