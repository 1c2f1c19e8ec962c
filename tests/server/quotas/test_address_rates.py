"""Connection quotas of addresses."""

from headrace.server.quotas.addresses import AddressLimits, AddressRates, addresses_of
from headrace.server.quotas.arithmetic import Window

RATE = "connection_creation_rate"


def made(quotas, window=Window(11, 1000)):  # noqa: B008  it is a tuple
    rates = AddressRates(window)
    rates.limits = AddressLimits.read({(("ip", name),): {RATE: limit} for name, limit in quotas.items()})
    return rates


def test_an_address_has_its_own_limit_or_the_default():
    limits = made({"10.0.0.1": 5.0, None: 2.0}).limits
    assert limits.of("10.0.0.1") == 5.0
    assert limits.of("::ffff:10.0.0.1") == 5.0, "the same peer on a socket for both families"
    assert limits.of("10.0.0.2") == 2.0
    assert made({"10.0.0.1": 5.0}).limits.of("10.0.0.2") is None


def test_a_host_name_stands_for_its_addresses_and_an_unknown_one_for_nothing(caplog):
    limits = made({"localhost": 5.0, "nowhere.invalid": 1.0}).limits
    assert limits.of("127.0.0.1") == 5.0
    assert "The connection quota of nowhere.invalid has no effect" in caplog.text
    assert addresses_of("nowhere.invalid") == set()


def test_a_connection_too_many_waits_at_most_a_sample_and_does_not_count():
    rates = made({None: 1.0})
    assert [rates.connected("10.0.0.1", 0.0) for _ in range(10)] == [0.0] * 10
    assert rates.connected("10.0.0.1", 0.0) == 1.0
    assert rates.connected("10.0.0.1", 0.0) == 1.0, "the first one too many was not counted"
    assert rates.connected("10.0.0.2", 0.0) == 0.0
    assert rates.connected("10.0.0.1", 11.0) == 0.0


def test_addresses_are_forgotten_once_their_connections_no_longer_count():
    rates = made({None: 100.0})
    for number in range(1000):
        rates.connected(f"10.0.{number // 250}.{number % 250}", 0.0)
    assert len(rates) == 1000
    rates.connected("10.9.9.9", 12.0)
    assert len(rates) == 1
