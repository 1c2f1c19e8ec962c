"""The load of the part `runner`: headrace.client's Runner with one of the ways of `once`, handling what a
topic holds.

Run as `python -m bench.runner_load ADDRESS TOPIC GROUP RECORDS WAY REDIS_SOCKET DATABASE_URL`; prints its
rate.
"""

import json
import sys
import threading
import time
from collections.abc import Callable

import redis
import sqlalchemy as sa

from headrace.client import Record, Runner
from headrace.client.once import LayeredStore, Once, RedisStore, SqlOnce, SqlStore, from_position

Handler = Callable[[Record], object]


def main(address: str, topic: str, group: str, records: int, way: str, socket: str, url: str) -> None:
    engine = sa.create_engine(url, pool_size=16)
    ledger = sa.Table("ledger", sa.MetaData(), sa.Column("entry", sa.BigInteger, primary_key=True))
    ledger.metadata.create_all(engine)
    front = RedisStore(redis.Redis(unix_socket_path=socket))
    lock = threading.Lock()
    handled = 0
    first = last = 0.0

    def nothing(record: Record) -> None:
        pass

    def book(record: Record, connection: sa.Connection) -> None:
        connection.execute(ledger.insert())

    ways: dict[str, Callable[[], Handler]] = {
        "plain": lambda: nothing,
        "redis": lambda: Once(group, front, id=from_position())(nothing),
        "sql": lambda: Once(group, SqlStore(engine), id=from_position())(nothing),
        "layered": lambda: Once(group, LayeredStore(front, SqlStore(engine)), id=from_position())(nothing),
        "database": lambda: SqlOnce(group, engine, id=from_position())(book),
    }
    handler = ways[way]()

    def counted(record: Record) -> None:
        nonlocal handled, first, last
        handler(record)
        with lock:
            handled += 1
            last = time.monotonic()
            first = first or last
            if handled == records:
                runner.stop()

    runner = Runner(
        counted, address, topics=topic, group_id=group, concurrency=16, auto_offset_reset="earliest"
    )
    runner.run()
    print(json.dumps({"records_per_second": (records - 1) / (last - first)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
