"""A consume-transform-produce chain in transactions, to be killed at any moment.

Run as `python chain.py BOOTSTRAP FROM TO GROUP LAST`; it ends when it has passed the record LAST.
"""

from __future__ import annotations

import sys

from headrace.client import Consumer, Producer

bootstrap, source, target, group, last = sys.argv[1:]
with (
    Producer(bootstrap, delivery="exactly_once", transactional_id=f"{group}-chain", linger_ms=0) as producer,
    Consumer(
        bootstrap,
        group_id=group,
        delivery="exactly_once",
        auto_offset_reset="earliest",
        group_instance_id="chain",
        session_timeout_ms=6000,
        max_poll_records=7,
    ) as consumer,
):
    consumer.subscribe(source)
    print("running", flush=True)
    while True:
        records = consumer.poll(0.5)
        with producer.transaction(consumer):
            for record in records:
                producer.send(target, record.raw_value, key=record.raw_key)
        if records:
            print(len(records), flush=True)
        if any(record.raw_value == last.encode() for record in records):
            break
