"""An order reaches risk control, customer service and analytics, each at its own pace; the customer waits for none of them."""

import random
import sys
import time

from examples.kit import Stage, stage, tell
from examples.orders.departments import ALERTS, Analytics, Department, customer_service, risk
from examples.orders.shop import ORDERS, Shop


def play(stage: Stage) -> None:
    count, chance = stage.sizes.orders, random.Random(3)
    stage.topic(ORDERS)
    stage.topic(ALERTS)
    texts: list[int] = []
    check, producer = risk(stage.bootstrap, stage.out / "risk.sqlite")
    analytics = Analytics(stage.out / "analytics.sqlite")
    departments = [
        Department("risk", stage.bootstrap, check, 4),
        Department("service", stage.bootstrap, customer_service(texts, stage.out / "service.sqlite"), 8),
        Department("analytics", stage.bootstrap, analytics.add, 1),
    ]
    amounts = [chance.randint(1, 1000) for _ in range(count)]
    started = time.monotonic()
    slowest = 0.0
    try:
        with Shop(stage.bootstrap, stage.out / "shop.sqlite", count) as shop:
            for number, amount in enumerate(amounts):
                before = time.monotonic()
                shop.order(number, f"customer-{number % 40}", amount)
                slowest = max(slowest, time.monotonic() - before)
            taken = time.monotonic() - started
            while shop.has_orders_to_tell():
                time.sleep(0.05)
        records = stage.count(ORDERS)
        while any(len(each.handled) < records for each in departments):
            time.sleep(0.05)
    finally:
        for each in departments:
            each.close()
        producer.close()
    alerts = [row["id"] for row in stage.rows(ALERTS)]
    alerts_expected = [number for number, amount in enumerate(amounts) if amount > 900]
    revenue = analytics.total()
    exactly_once = (
        sorted(texts) == list(range(count)) and sorted(alerts) == alerts_expected and revenue == sum(amounts)
    )
    tell(
        stage,
        orders=count,
        all_orders_taken_after=f"{taken:.1f} s (the slowest waited {slowest * 1000:.0f} ms)",
        **{f"{each.name}_had_all_after": f"{each.finished_at - started:.1f} s" for each in departments},
        alerts=len(alerts),
        alerts_expected=len(alerts_expected),
        text_messages=len(texts),
        revenue=revenue,
        revenue_expected=sum(amounts),
        every_order_exactly_once="yes" if exactly_once else "no",
    )
    if not exactly_once:
        sys.exit("An order was missed, or counted twice.")


with stage("orders", __doc__, orders=1_000) as place:
    play(place)
