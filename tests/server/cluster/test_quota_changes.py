"""What may be set as a quota, with Kafka's messages for what may not."""

import pytest

from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.policy_changes import QuotaChanged
from headrace.server.cluster.quota_changes import Alteration, alter_quotas
from headrace.wire.errors import ErrorCode

ADA = [("user", "ada")]


def altered(*requested, quotas=None):
    return alter_quotas(MetadataImage(quotas=quotas or {}), [Alteration(*each) for each in requested])


def refusal(entity, *ops):
    (error,) = altered((entity, ops)).result
    assert error.code is ErrorCode.INVALID_REQUEST
    return error.message


def test_values_are_set_and_removed_together():
    outcome = altered(
        (ADA, [("producer_byte_rate", 1024.0), ("consumer_byte_rate", None)]),
        quotas={(("user", "ada"),): {"consumer_byte_rate": 5.0}},
    )
    assert outcome.result == [None]
    assert outcome.changes == [
        QuotaChanged((("user", "ada"),), {"producer_byte_rate": 1024.0, "consumer_byte_rate": None})
    ]


def test_the_order_in_which_an_entity_names_its_parts_does_not_matter():
    outcome = altered(([("client-id", None), ("user", "ada")], [("producer_byte_rate", 1.0)]))
    assert outcome.changes[0].entity == (("user", "ada"), ("client-id", None))


def test_what_is_so_already_changes_nothing():
    held = {(("user", "ada"),): {"producer_byte_rate": 1.0}}
    assert (
        altered((ADA, [("producer_byte_rate", 1.0), ("request_percentage", None)]), quotas=held).changes == []
    )


def test_one_entity_does_not_suffer_from_anothers_error():
    outcome = altered((ADA, [("nonsense", 1.0)]), ([("user", "ben")], [("request_percentage", 12.5)]))
    assert outcome.result[0].message == "Invalid configuration key nonsense"
    assert outcome.result[1] is None
    assert [change.entity for change in outcome.changes] == [(("user", "ben"),)]


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        ([], "Invalid empty client quota entity"),
        ([("group", "g")], "Unhandled client quota entity type: group"),
        ([("user", "")], "Empty user not supported"),
        ([("user", "a"), ("user", "b")], "Invalid client quota entity, duplicate entity entry user"),
        (
            [("ip", "10.0.0.1"), ("user", "a")],
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
        ),
    ],
)
def test_an_entity_that_cannot_be_is_refused(entity, message):
    assert refusal(entity, ("producer_byte_rate", 1.0)) == message


@pytest.mark.parametrize(
    ("entity", "name", "value", "message"),
    [
        (ADA, "producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        (ADA, "producer_byte_rate", -1.0, "Quota producer_byte_rate must be greater than 0"),
        (ADA, "producer_byte_rate", float("nan"), "Quota producer_byte_rate must be greater than 0"),
        (ADA, "producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        (ADA, "consumer_byte_rate", 1e19, "Proposed value for consumer_byte_rate is too large for a LONG."),
        (ADA, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        ([("ip", None)], "request_percentage", 1.0, "Invalid configuration key request_percentage"),
        (
            [("ip", None)],
            "connection_creation_rate",
            3e9,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused(entity, name, value, message):
    assert refusal(entity, (name, value)) == message


def test_an_entity_and_a_name_may_appear_once():
    twice = ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)
    shown = "ClientQuotaEntity(entries={user=ada})"
    assert refusal(ADA, *twice) == (
        f"Duplicate quota key producer_byte_rate not updating quota for this entity {shown}"
    )
    outcome = altered((ADA, twice[:1]), (ADA, twice[1:]))
    assert outcome.result[0] is None
    assert outcome.result[1].message == f"Ignoring duplicate entity {shown}"
