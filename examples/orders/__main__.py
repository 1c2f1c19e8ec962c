"""An order reaches risk control, customer service and analytics, each at its own pace; the customer waits for none of them."""

import random
import time
from collections import Counter

from examples.kit import Stage, stage, tell
from examples.orders.departments import ALERTS, Department, analytics, customer_service, risk
from examples.orders.shop import ORDERS, Shop


def play(stage: Stage) -> None:
    count, chance = stage.sizes.orders, random.Random(3)
    stage.topic(ORDERS)
    stage.topic(ALERTS)
    texts, revenue = Counter[str](), Counter[str]()
    check, producer = risk(stage.bootstrap)
    departments = [
        Department("risk", stage.bootstrap, check, 4),
        Department("service", stage.bootstrap, customer_service(texts), 8),
        Department("analytics", stage.bootstrap, analytics(revenue), 1),
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
            while any(each.done < count for each in departments):
                time.sleep(0.05)
    finally:
        for each in departments:
            each.close()
        producer.close()
    tell(
        stage,
        orders=count,
        all_orders_taken_after=f"{taken:.1f} s (the slowest waited {slowest * 1000:.0f} ms)",
        **{f"{each.name}_had_all_after": f"{each.finished_at - started:.1f} s" for each in departments},
        alerts=len({row["id"] for row in stage.rows(ALERTS)}),
        alerts_expected=sum(amount > 900 for amount in amounts),
        text_messages=texts.total(),
        revenue=revenue["total"],
        revenue_expected=sum(amounts),
    )


with stage("orders", __doc__, orders=1_000) as place:
    play(place)
