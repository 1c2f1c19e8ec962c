"""Two members book transfers into one ledger and are killed again and again: each booking is there once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from headrace.client import Producer, serializers

HERE = Path(__file__).parent
TRANSFERS = 300


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", ["by id", "by offset"])
def test_every_transfer_is_booked_exactly_once(
    mode: str, bootstrap: str, new_topic: Callable[..., str], group: str, mariadb: Any
) -> None:
    topic, url = new_topic(4), mariadb.new_database()
    engine = sa.create_engine(url)
    ledger = sa.Table(
        "ledger", sa.MetaData(), sa.Column("transfer", sa.Integer), sa.Column("account", sa.String(9))
    )
    ledger.metadata.create_all(engine)
    with Producer(bootstrap, value_serializer=serializers.json()) as producer:
        for number in range(TRANSFERS):
            for account in ("from", "to"):
                # With ids, what the producer sent twice is recognised as well.
                for _ in range(2 if mode == "by id" and number % 10 == 0 else 1):
                    producer.send_and_forget(
                        topic, {"transfer": number, "account": account}, key=f"{number}-{account}"
                    )

    def start(name: str) -> subprocess.Popen[bytes]:
        arguments = [mode, bootstrap, topic, group, url, name]
        return subprocess.Popen([sys.executable, HERE / "ledger_worker.py", *arguments])

    def wait_for(bookings: int) -> None:
        deadline = time.monotonic() + 150
        while (booked := _booked(engine, ledger)) < bookings:
            assert time.monotonic() < deadline, f"{booked} of {bookings} bookings were made"
            time.sleep(0.02)

    chance = random.Random(6)
    members = {name: start(name) for name in ("one", "two")}
    try:
        for death in range(1, 4):
            wait_for(death * 2 * TRANSFERS // 5)
            name = chance.choice(list(members))
            members[name].kill()
            members[name].wait()
            members[name] = start(name)
        wait_for(2 * TRANSFERS)
    finally:
        for member in members.values():
            member.kill()
            member.wait()
    with engine.connect() as connection:
        rows = connection.execute(sa.select(ledger)).all()
    expected = [(number, account) for number in range(TRANSFERS) for account in ("from", "to")]
    assert sorted(tuple(row) for row in rows) == expected


def _booked(engine: sa.Engine, ledger: sa.Table) -> int:
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(ledger)).scalar_one()
