"""A flash sale: 20,000 requests in a burst, 500 pieces in stock. The topic takes the peak, the shop keeps its pace.

Statistics are left out at the peak and caught up with afterwards.
"""

import json
import socket
import time
import urllib.request
from collections import Counter

from examples.chart import line_chart, per_step
from examples.flash_sale.buyers import crowd
from examples.flash_sale.shop import GROUP, REQUESTS, RESULTS, Shop
from examples.kit import Stage, stage, tell
from headrace.client import Record

ITEM = "console"
GATEWAY = """\
name = "gateway"

[topic]
name = "{topic}"
key = "buyer"

[source]
type = "http-endpoint"
listen = "{listen}"
"""


def play(stage: Stage) -> None:
    sizes = stage.sizes
    stage.topic(REQUESTS, 4)
    stage.topic(RESULTS, 4)
    listen = f"127.0.0.1:{_free_port()}"
    (stage.out / "gateway.toml").write_text(GATEWAY.format(topic=REQUESTS, listen=listen))
    print(f"{sizes.buyers:,} buyers, {sizes.stock:,} pieces, {sizes.deadline} s to be served")
    gateway = stage.start("connect", "run", stage.out / "gateway.toml")
    shop = Shop(
        stage.bootstrap, stage.out / "shop.sqlite", ITEM, sizes.stock, sizes.deadline, sizes.buyers // 20
    )
    try:
        shop.open()
        _wait_for(listen)
        crowd(listen, 1, "rehearsal")  # Two clicks of one buyer: from here on, the shop is known to work.
        _wait_for_results(stage, 2)
        began = time.monotonic()
        statuses = crowd(listen, sizes.buyers, ITEM)
        burst = time.monotonic() - began
        accepted = statuses[200]
        print(f"the gateway took {accepted:,} requests in {burst:.1f} s; the shop works them off")
        _wait_for_results(stage, 2 + accepted)
        while not shop.counts_now:
            time.sleep(0.2)
        left_out, counted = shop.left_out, sum(shop.demanded(ITEM).values())
        print(f"the rush is over: {left_out:,} requests were served but not counted, which is done now")
        replay = json.loads(stage.headrace("degrade", "replay", GROUP, "--json"))
        while sum(shop.demanded(ITEM).values()) < counted + replay["replayed"]:
            time.sleep(0.2)
        demanded = shop.demanded(ITEM)
    finally:
        gateway.terminate()
        gateway.wait()
        shop.close()
    requests = _of_the_sale(stage.records(REQUESTS))
    clicks = Counter(int(json.loads(record.value)["buyer"]) for record in requests)
    arrived = sorted(record.timestamp for record in requests)
    results = _of_the_sale(stage.records(RESULTS))
    outcomes = Counter(json.loads(record.value)["outcome"] for record in results)
    # What came too late was thrown away at a glance; the shop's work is the rest.
    answered = sorted(
        record.timestamp for record in results if json.loads(record.value)["outcome"] != "too late"
    )
    start = arrived[0]
    end = (answered[-1] - start) / 1000
    step = max(end / 40, 0.1)
    lines = {
        "requests": per_step([(each - start) / 1000 for each in arrived], step, end),
        "served by the shop": per_step([(each - start) / 1000 for each in answered], step, end),
    }
    line_chart(
        stage.out / "peak.svg",
        "A flash sale: the peak, and what the shop saw of it",
        "seconds",
        "requests",
        lines,
    )
    sold = shop.sold()
    tell(
        stage,
        accepted=accepted,
        requests_per_second_at_the_gateway=round(accepted / burst),
        requests_per_second_in_the_shop=round(len(answered) / end),
        turned_away_for_a_moment=statuses.get(429, 0) + statuses.get(503, 0),
        sold=len(sold),
        oversold=max(0, len(sold) - sizes.stock),
        different_buyers=len(set(sold)),
        sold_out=outcomes["sold out"],
        too_late=outcomes["too late"],
        clicked_twice=outcomes["the same request again"],
        counted_at_the_peak=counted,
        left_out_of_the_statistics=left_out,
        counted_afterwards=replay["replayed"],
        counted_in_all=sum(demanded.values()),
        buyers_counted_wrong=sum(demanded.get(buyer, 0) != times for buyer, times in clicks.items()),
        highest_peak_of_requests=int(max(count for _, count in lines["requests"])),
        highest_peak_in_the_shop=int(max(count for _, count in lines["served by the shop"])),
    )


def _wait_for_results(stage: Stage, count: int) -> None:
    while stage.count(RESULTS) < count:
        time.sleep(0.2)


def _of_the_sale(records: list[Record]) -> list[Record]:
    return [record for record in records if json.loads(record.value)["item"] == ITEM]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"http://{address}/health", timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"the gateway did not start: {error}") from None
            time.sleep(0.1)


with stage("flash_sale", __doc__, buyers=20_000, stock=500, deadline=10) as place:
    play(place)
