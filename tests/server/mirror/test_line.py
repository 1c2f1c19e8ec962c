"""The line between source and target: it breaks, it stalls, it is narrow, it is encrypted."""

import os
import time

import pytest

from headrace.client.administration import mirrors
from headrace.server.mirror.throttle import LinkThrottle
from headrace.testing.broker import BrokerThread
from headrace.testing.clock import MovableClock
from headrace.testing.topics import create_topic
from headrace.wire.records import BatchBuilder
from tests.certificates import Certificates
from tests.server.mirror.dc import Site, produce, segments
from tests.server.mirror.line import Line
from tests.waiting import until

RECORD = 100_000


@pytest.fixture
def target(tmp_path):
    with BrokerThread(tmp_path / "target") as broker:
        yield broker


@pytest.fixture
def far(tmp_path):
    """A source behind a line."""

    def make(line):
        broker = BrokerThread(
            tmp_path / "source", {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{line.port}"}
        )
        made.append(broker.start())
        line.target = broker.port
        return broker

    made = []
    yield make
    for broker in made:
        broker.stop()


def fill(broker, topic, megabytes):
    for _ in range(megabytes):
        builder = BatchBuilder()
        for _ in range(10):
            builder.append(1_700_000_000_000, None, os.urandom(RECORD))
        assert produce(broker.bootstrap, topic, records=bytes(builder.build())).error_code == 0


def test_a_copy_goes_on_where_it_was_when_the_line_breaks_and_stalls(target, far):
    with Line(rate=20_000_000) as line:
        source = far(line)
        topic = source.create_topic(config={"max.message.bytes": 2_000_000})
        fill(source, topic, 6)
        site = Site(target.bootstrap).allow_links().link(f"127.0.0.1:{line.port}", topics=[topic])
        for megabytes in (1, 3):
            until(lambda megabytes=megabytes: line.carried > megabytes * 1_000_000, "progress")
            line.cut()
        line.stall(0.5)
        site.await_copy(topic, {0: 60})
        assert segments(target.data, topic) == segments(source.data, topic)


def test_while_the_source_is_away_the_link_says_so_and_the_lag_in_seconds_grows(target, far):
    with Line() as line:
        source = far(line)
        topic = source.create_topic()
        produce(source.bootstrap, topic, b"0")
        site = Site(target.bootstrap).allow_links().link(f"127.0.0.1:{line.port}", topics=[topic])
        site.await_copy(topic, {0: 1})
        source.kill()
        until(lambda: site.topic(topic).positions[0].lag_seconds > 0, "the lag")
        until(lambda: site.call(mirrors.describe)[0].trouble, "the trouble")
        source.start()
        line.target = source.port
        produce(source.bootstrap, topic, b"1")
        site.await_copy(topic, {0: 2})


def test_a_throttle_counts_what_was_taken_and_pays_it_off():
    clock = MovableClock()
    throttle = LinkThrottle(1000, clock)
    assert throttle.seconds_left() == 0
    throttle.count(3000)
    assert 2.5 < throttle.seconds_left() <= 3
    clock.advance(3)
    assert throttle.seconds_left() == 0
    unlimited = LinkThrottle(0, clock)
    unlimited.count(10**9)
    assert unlimited.seconds_left() == 0


def test_a_link_logs_in_over_tls_and_shows_neither_password_nor_key(tmp_path, target):
    certificates = Certificates(tmp_path / "keys")
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        **certificates.listener(),
        "listeners": "SASL_SSL://localhost:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{jaas} user_mirror="open sesame";',
    }
    with BrokerThread(tmp_path / "source", settings) as source:
        plain = f"127.0.0.1:{source.node.addresses['INTERNAL'][1]}"
        secured = f"localhost:{source.node.addresses['SASL_SSL'][1]}"
        assert produce(plain, make_topic(plain), b"secret things").error_code == 0
        login = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "ssl.truststore.location": str(certificates.ca),
            "ssl.truststore.type": "PEM",
        }
        site = Site(target.bootstrap).allow_links()
        wrong = f'{jaas} username="mirror" password="wrong";'
        site.link(secured, name="wrong", topics=["orders"], **login, **{"sasl.jaas.config": wrong})
        until(lambda: trouble(site, "wrong"), "the refusal")
        assert "wrong" not in str(trouble(site, "wrong")).replace("link wrong", "")
        right = f'{jaas} username="mirror" password="open sesame";'
        site.link(secured, topics=["orders"], **login, **{"sasl.jaas.config": right})
        site.await_copy("orders", {0: 1})
        shown = next(each for each in site.call(mirrors.describe) if each.name == "dc")
        assert shown.settings["sasl.jaas.config"] is None
        assert "sesame" not in repr(shown)


def make_topic(bootstrap):
    create_topic(bootstrap, "orders")
    return "orders"


def trouble(site, name):
    return next(each.trouble for each in site.call(mirrors.describe) if each.name == name)


@pytest.mark.long
def test_a_line_of_20_mbit_and_100_ms_with_stalls_and_cuts_is_used_to_four_fifths(target, far):
    rate = 20_000_000 / 8
    with Line(rate=rate, delay=0.05) as line:
        source = far(line)
        topic = source.create_topic(config={"max.message.bytes": 2_000_000})
        fill(source, topic, 130)
        site = Site(target.bootstrap).allow_links().link(f"127.0.0.1:{line.port}", topics=[topic])

        def copied():
            found = site.topic(topic)
            return found.positions[0].end_offset * RECORD if found and found.positions else 0

        until(copied, "a beginning")
        began, before, carried = time.monotonic(), copied(), line.carried
        for second in range(45):
            time.sleep(1)
            if second % 10 == 4:
                line.stall(0.3)
            if second % 15 == 9:
                line.cut()
        seconds = time.monotonic() - began
        used = (copied() - before) / rate / seconds
        print(
            f"{used:.1%} of the line was of use; it carried {(line.carried - carried) / rate / seconds:.1%}"
        )
        assert copied() < 130 * 10 * RECORD, "there was not enough to copy"
        assert used >= 0.8
