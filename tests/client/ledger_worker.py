"""A member of a group that books transfers into a ledger, to be killed at any moment.

Run as `python ledger_worker.py MODE BOOTSTRAP TOPIC GROUP DATABASE_URL NAME`; MODE is "by id" or "by offset".
"""

from __future__ import annotations

import sys

import sqlalchemy as sa

from headrace.client import Record, Runner, serializers
from headrace.client.once import SqlOnce, from_fields

mode, bootstrap, topic, group, url, name = sys.argv[1:]
engine = sa.create_engine(url)
ledger = sa.Table(
    "ledger", sa.MetaData(), sa.Column("transfer", sa.Integer), sa.Column("account", sa.String(9))
)
once = (
    SqlOnce("ledger", engine, id=from_fields("transfer", "account"))
    if mode == "by id"
    else SqlOnce("ledger", engine, offsets=True)
)


@once
def book(record: Record, connection: sa.Connection) -> None:
    connection.execute(ledger.insert().values(record.value))


Runner(
    book,
    bootstrap,
    topics=topic,
    group_id=group,
    order="key" if mode == "by id" else "partition",
    concurrency=4,
    commit_interval=0.2,
    value_deserializer=serializers.json(),
    auto_offset_reset="earliest",
    heartbeat_interval_ms=100,
    session_timeout_ms=6000,
    group_instance_id=name,
).run()
