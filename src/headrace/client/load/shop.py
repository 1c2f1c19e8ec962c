"""A small shop at work, for `headrace demo`: orders, a group that keeps up, one that falls behind and catches up, dead letters.

Everything runs in threads of this process until `close()`.
"""

from __future__ import annotations

import json
import random
import threading
import time
from datetime import UTC, datetime

from headrace.client.admin import Admin
from headrace.client.lag import LagMonitor
from headrace.client.producer import Producer
from headrace.client.record import Record
from headrace.client.runner.retry import Retry
from headrace.client.runner.threads import Runner

ORDERS = "orders"
PARTITIONS = 3
BILLING = "billing"
REPORTS = "reports"
UNPAYABLE_EVERY = 97
"""One order in so many has no amount that anybody could pay: it becomes a dead letter."""
SLOW_SECONDS, FAST_SECONDS = 40.0, 20.0
"""How long reports fall behind, and how long they have to catch up."""
_SLOW, _FAST = 0.6, 4.0
"""The records reports can take, as a share of those that come."""

_CUSTOMERS = ("ada", "ben", "cem", "dia", "eli", "fay", "gus", "hal")
_MOST_AT_ONCE = 0.1


class Shop:
    """Sells `rate` orders a second to a topic of its own cluster."""

    def __init__(self, bootstrap: str, rate: float) -> None:
        self._rate = rate
        self._ended = threading.Event()
        self._began = time.monotonic()
        self.sold = 0
        with Admin(bootstrap) as admin:
            admin.create_topic(ORDERS, partitions=PARTITIONS)
        self._producer = Producer(bootstrap)
        groups = {"topics": ORDERS, "auto_offset_reset": "earliest"}
        self._billing = Runner(self._bill, bootstrap, group_id=BILLING, retry=Retry(attempts=2), **groups)  # type: ignore[arg-type]
        self._reports = Runner(
            self._report,
            bootstrap,
            group_id=REPORTS,
            concurrency=1,
            max_in_flight=50,
            **groups,  # type: ignore[arg-type]
        )
        self._threads = [
            threading.Thread(target=target, name=f"shop-{name}")
            for name, target in (
                ("orders", self._sell),
                (BILLING, self._billing.run),
                (REPORTS, self._reports.run),
            )
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._ended.set()
        self._billing.stop()
        self._reports.stop()
        for thread in self._threads:
            thread.join()
        self._producer.close()

    def _sell(self) -> None:
        chance = random.Random()
        while not self._ended.wait(min(_MOST_AT_ONCE, 1 / self._rate)):
            due = int((time.monotonic() - self._began) * self._rate)
            while self.sold < due:
                self.sold += 1
                customer = chance.choice(_CUSTOMERS)
                self._producer.send_and_forget(
                    ORDERS, _order(self.sold, customer, chance).encode(), key=customer.encode()
                )

    def _bill(self, record: Record[bytes, bytes]) -> None:
        assert record.value is not None
        order = json.loads(record.value)
        if order["amount"] <= 0:
            raise ValueError(f"order {order['id']} has the amount {order['amount']}")

    def _report(self, record: Record[bytes, bytes]) -> None:
        is_slow = (time.monotonic() - self._began) % (SLOW_SECONDS + FAST_SECONDS) < SLOW_SECONDS
        self._ended.wait(1 / (self._rate * (_SLOW if is_slow else _FAST)))


def _order(number: int, customer: str, chance: random.Random) -> str:
    amount = -1.0 if number % UNPAYABLE_EVERY == 0 else round(chance.expovariate(1 / 60), 2)
    return json.dumps(
        {"id": number, "customer": customer, "amount": amount, "at": datetime.now(UTC).isoformat()}
    )


class Watch:
    """What there is to see of a shop from outside."""

    def __init__(self, bootstrap: str) -> None:
        self._monitor = LagMonitor(bootstrap)

    def unread(self, group: str) -> int:
        return self._monitor.measure(group, [ORDERS]).records

    def records_in(self, topic: str) -> int:
        """0 while there is no such topic."""
        admin = self._monitor.admin
        if topic not in admin.topics():
            return 0
        partitions = admin.partitions_of(topic)
        ends, begins = admin.offsets("latest", partitions), admin.offsets("earliest", partitions)
        return sum(ends[each] - begins[each] for each in partitions)

    def close(self) -> None:
        self._monitor.close()
