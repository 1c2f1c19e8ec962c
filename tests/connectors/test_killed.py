"""Processes killed with SIGKILL in the middle of their work, and what is there when others have gone on: counted."""

import json
import os
import signal
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
import urllib3
from sqlalchemy.pool import NullPool

ROWS = 600
BATCH = 60


class Receiver(ThreadingHTTPServer):
    """Takes what is posted, and remembers each body with its Idempotency-Key."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.headers["Idempotency-Key"], json.loads(body)["id"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver(serving):
    return serving(Receiver())


def kill(process):
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_tables_and_lakes_are_moved_once_and_webhooks_called_at_least_once(
    connect, started, bootstrap, new_topic, produce, read_all, mariadb, receiver, tmp_path, eventually
):
    """Four connectors in one process, which is killed twice; a third one finishes the work."""
    url = mariadb.new_database()
    with sa.create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (id BIGINT PRIMARY KEY)"))
        connection.execute(sa.text(f"INSERT INTO orders SELECT seq - 1 FROM seq_1_to_{ROWS}"))
    for number in range(0, ROWS, BATCH):
        path = tmp_path / "lake-in" / f"part={number}"
        path.mkdir(parents=True)
        pq.write_table(pa.table({"id": range(number, number + BATCH)}), path / "rows.parquet")
    from_table, from_lake, full = new_topic(), new_topic(2), new_topic(2)
    for partition in range(2):
        produce(full, range(partition, ROWS, 2), partition=partition)
    lake = tmp_path / "lake-out"
    files = {
        "table-in": f'[topic]\nname = "{from_table}"\n[source]\ntype = "sql"\nurl = "{url}"\ntable = "orders"\n'
        f'column = "id"\nsettle = 0\nmax_rows = {BATCH}\n',
        "lake-in": f'[topic]\nname = "{from_lake}"\n[source]\ntype = "lake"\npath = "{tmp_path}/lake-in"\nmax_bytes = 1\n',
        "lake-out": f'[topic]\nname = "{full}"\nschema = "id BIGINT"\nmax_records = {BATCH}\n'
        f'[sink]\ntype = "lake"\npath = "{lake}"\ncompact_every = 3\n',
        "hook": f'[topic]\nname = "{full}"\nmax_records = {BATCH}\n[sink]\ntype = "webhook"\nurl = "{receiver.url}"\n',
    }
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(f"{text}[run]\nevery = 0\n")
    arguments = [*(f"{name}.toml" for name in files), "-b", bootstrap, "-m", "local[2]"]

    def counts():
        in_lake = ds.dataset(lake, partitioning="hive").count_rows() if lake.exists() else 0
        return len(read_all(from_table)), len(read_all(from_lake)), in_lake, len(receiver.taken)

    def moved(before):
        """All of them are on their way."""
        try:
            return all(now > then for now, then in zip(counts(), before, strict=True))
        except FileNotFoundError:
            return False  # a file of the lake was merged while we looked

    before = 0, 0, 0, 0
    for _ in range(2):
        running = started("run", *arguments, "--conf", "spark.driver.memory=512m")
        eventually(lambda: running.poll() is not None or moved(before), seconds=500)  # noqa: B023
        assert running.poll() is None, (tmp_path / "stderr").read_text()
        kill(running)
        before = tuple(min(count, ROWS - BATCH) for count in counts())
    connect("run", *arguments, "--once")
    everything = list(range(ROWS))
    assert sorted(json.loads(record.value)["id"] for record in read_all(from_table)) == everything
    assert sorted(json.loads(record.value)["id"] for record in read_all(from_lake)) == everything
    assert sorted(ds.dataset(lake, partitioning="hive").to_table()["id"].to_pylist()) == everything
    assert sorted(set(receiver.taken)) == sorted(dict(receiver.taken).items()), "a key stands for one record"
    assert sorted(dict(receiver.taken).values()) == everything
    again = Counter(dict(Counter(receiver.taken)).values())
    assert sum(count for times, count in again.items() if times > 1) <= 2 * BATCH, (
        "only what was under way comes again"
    )


def test_what_an_endpoint_acknowledged_is_there_although_it_was_killed(
    connect, started, bootstrap, new_topic, read_all, tmp_path
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    topic = new_topic(2)
    (tmp_path / "gate.toml").write_text(
        f'[topic]\nname = "{topic}"\nkey = "id"\n[source]\ntype = "http-endpoint"\nlisten = "127.0.0.1:{port}"\n'
    )
    pool = urllib3.PoolManager(retries=False, maxsize=8, timeout=30)
    over = threading.Event()
    in_the_middle = {10: threading.Barrier(9, timeout=60), 30: threading.Barrier(9, timeout=60)}

    def send(sender):
        """As senders do: the same record again, under the same key, until it is acknowledged."""
        for number in range(50):
            if number in in_the_middle:
                in_the_middle[number].wait()
            identity = f"{sender}-{number}"
            while not over.is_set():
                try:
                    answer = pool.request(
                        "POST",
                        f"http://127.0.0.1:{port}/",
                        json={"id": identity},
                        headers={"Idempotency-Key": identity},
                    )
                except urllib3.exceptions.HTTPError:
                    over.wait(0.05)
                    continue
                if answer.status == 200:
                    break

    def start():
        endpoint = started("run", "gate.toml", "-b", bootstrap, "--json")
        endpoint.stdout.readline()  # it listens
        return endpoint

    running = start()
    with ThreadPoolExecutor(8) as senders:
        sending = [senders.submit(send, sender) for sender in range(8)]
        try:
            for moment in in_the_middle.values():
                moment.wait()
                kill(running)
                running = start()
            for each in sending:
                each.result(120)
        finally:
            over.set()
    pool.clear()
    found = Counter(record.header("headrace.id").decode() for record in read_all(topic))
    assert sorted(found) == sorted(f"{sender}-{number}" for sender in range(8) for number in range(50))
    values = {
        (record.header("headrace.id").decode(), json.loads(record.value)["id"]) for record in read_all(topic)
    }
    assert all(identity == value for identity, value in values)
    connect("stop", "gate")
    assert running.wait(60) == 0
