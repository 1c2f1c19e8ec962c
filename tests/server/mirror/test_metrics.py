"""What a scrape says of mirrored topics."""

import urllib.request

from headrace.client.administration import mirrors
from headrace.testing.broker import BrokerThread
from tests.server.mirror.dc import Site, produce


def scrape(broker):
    host, port = broker.node.metrics_address
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("headrace_mirror"))


def test_lag_and_states_are_scraped(tmp_path):
    with (
        BrokerThread(tmp_path / "source") as source,
        BrokerThread(tmp_path / "target", {"headrace.metrics.listener": "127.0.0.1:0"}) as target,
    ):
        site = Site(target.bootstrap).allow_links()
        assert scrape(target) == {}
        source.create_topic("orders")
        produce(source.bootstrap, "orders", b"0", b"1")
        site.link(source.bootstrap, topics=["orders"])
        site.await_copy("orders", {0: 2})
        place = '{link="dc",topic="orders"}'
        assert scrape(target) == {
            f"headrace_mirror_lag_records{place}": "0",
            f"headrace_mirror_lag_bytes{place}": "0",
            f"headrace_mirror_lag_seconds{place}": "0.0",
            f"headrace_mirror_missed_records{place}": "0",
            'headrace_mirror_topics{link="dc",state="mirroring"}': "1",
        }
        source.kill()
        site.call(mirrors.fail_over, "dc")
        site.await_state("orders", "failed over")
        assert scrape(target) == {'headrace_mirror_topics{link="dc",state="failed over"}': "1"}
        (end,) = site.topic("orders").ends
        assert (end.last_offset, end.lost_records) == (1, 0)
