from __future__ import annotations

import pytest

from headrace.cli.failure import Misuse
from headrace.cli.kafka.quota_configs import java_double
from headrace.cli.parsing.quota_values import parse, shown


def test_quotas_are_set_shown_and_removed(headrace, name):
    of_user = ["--user", f"User:{name}"]
    assert headrace("quotas", "set", *of_user, "produce=10MB/s", "request-time=50%").out == (
        f"User {name} has produce 10 MB/s, request-time 50%.\n"
    )
    assert headrace("quotas", "list", *of_user, "--json").json == [
        {
            "entity": {"user": name},
            "quotas": {"producer_byte_rate": 10_000_000, "request_percentage": 50},
        }
    ]
    assert [line.split() for line in headrace("quotas", "list", *of_user).lines] == [
        ["ENTITY", "PRODUCE", "CONSUME", "REQUEST-TIME", "MUTATIONS", "CONNECTIONS"],
        ["user", name, "10", "MB/s", "-", "50%", "-", "-"],
    ]
    assert headrace("quotas", "remove", *of_user, "produce").out == (
        f"User {name} no longer has produce 10 MB/s.\n"
    )
    assert headrace("quotas", "remove", *of_user, "--json").json == {
        "entity": {"user": name},
        "removed": {"request_percentage": 50},
    }
    assert headrace("quotas", "list", *of_user).out == f"There are no quotas of user {name}.\n"


def test_a_user_with_a_client_id_and_the_defaults(headrace, name):
    both = ["--user", name, "--default-client-id"]
    assert headrace("quotas", "set", *both, "consumer_byte_rate=512KiB", "--dry-run").out == (
        f"User {name}, the default client-id can have consume 512 KiB/s.\n"
    )
    assert headrace("quotas", "list", *both, "--json").json == []
    headrace("quotas", "set", *both, "mutations=2.5/s")
    headrace("quotas", "set", "--default-ip", "connections=1000/s")
    entities = [each["entity"] for each in headrace("quotas", "list", "--json").json]
    assert {"user": name, "client-id": None} in entities
    assert {"ip": None} in entities
    assert headrace("quotas", "remove", *both).code == 0
    assert headrace("quotas", "remove", "--default-ip").code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["set", "produce=1MB"], "Say whose quota it is"),
        (["set", "--user", "a", "--default-user", "produce=1MB"], "Give either --user or --default-user."),
        (["set", "--user", "", "produce=1MB"], "--user is empty"),
        (["set", "--ip", "10.0.0.1", "--user", "a", "produce=1MB"], "cannot be combined"),
        (["set", "--user", "a", "produse=1MB"], "There is no quota 'produse'. Did you mean 'produce'?"),
        (["set", "--user", "a", "produce=fast"], "A quota looks like produce=10MB/s, not 'produce=fast'."),
        (["set", "--user", "a", "produce"], "A quota looks like produce=10MB/s"),
        (["set", "--user", "a", "connections=5"], "Invalid configuration key connection_creation_rate."),
        (["set", "--ip", "nowhere.invalid", "connections=5"], "is not a valid IP or resolvable host."),
        (["remove", "--user", "nobody-at-all"], "There is no quota of user nobody-at-all"),
    ],
)
def test_a_mistake_gets_one_sentence(headrace, arguments, sentence):
    ran = headrace("quotas", *arguments)
    assert ran.code in (1, 2)
    assert ran.out == ""
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("produce=1024", 1024),
        ("produce=1.5MB/s", 1_500_000),
        ("consume=2 GiB/s", 2 * 2**30),
        ("consume=10kb", 10_000),
        ("request-time=12.5", 12.5),
        ("mutations=0.5/s", 0.5),
    ],
)
def test_values_are_read_with_their_units(text, number):
    assert parse(text)[1] == number


@pytest.mark.parametrize(
    "text", ["produce=10%", "produce=-1", "produce=0", "request-time=5MB", "mutations=5%"]
)
def test_values_that_make_no_sense_are_refused(text):
    with pytest.raises(Misuse):
        parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10_000_000, "10 MB/s"),
        (1_500_000, "1.5 MB/s"),
        (2**20, "1 MiB/s"),
        (1024, "1 KiB/s"),
        (1234567, "1234567 B/s"),
    ],
)
def test_bytes_are_shown_exactly(value, text):
    assert shown("produce", value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1024.0, "1024.0"), (1e7, "1.0E7"), (12345678.0, "1.2345678E7"), (12.5, "12.5"), (0.0001, "1.0E-4")],
)
def test_numbers_are_written_as_java_does(value, text):
    assert java_double(value) == text
