"""Decisions by ACLs are Kafka's: every pattern, deny before allow, implied operations, hosts, super users and the default."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.server.security.acl_table import (
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    SUPER_USER,
    AclTable,
)
from headrace.server.security.acls import ALL, Acl, AclFilter, PatternType, Permission
from headrace.server.security.authorizer import StandardAuthorizer
from headrace.server.security.operations import CLUSTER, Operation, Resource, ResourceKind

TOPIC, GROUP = ResourceKind.TOPIC, ResourceKind.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALICE, HERE = "User:alice", "10.0.0.1"


def acl(operation, name="orders", pattern=LITERAL, *, principal=ALICE, host="*", kind=TOPIC, deny=False):
    permission = Permission.DENY if deny else Permission.ALLOW
    return Acl(kind, name, pattern, principal, host, operation, permission)


def allows(acls, operation, name="orders", principal=ALICE, host=HERE, kind=TOPIC, **how):
    return AclTable(acls, **how).decide(principal, host, operation, Resource(kind, name)).allowed


def test_a_literal_acl_is_about_one_name():
    assert allows([acl(READ)], READ)
    assert not allows([acl(READ)], READ, "orders-2")
    assert not allows([acl(READ)], READ, kind=GROUP)


def test_a_prefixed_acl_is_about_every_name_that_starts_so():
    acls = [acl(READ, "ord", PREFIXED)]
    assert allows(acls, READ, "orders")
    assert allows(acls, READ, "ord")
    assert not allows(acls, READ, "or")
    assert not allows(acls, READ, "border")


def test_a_star_is_every_name_only_as_a_literal():
    assert allows([acl(READ, "*")], READ, "whatever")
    assert not allows([acl(READ, "*", PREFIXED)], READ, "whatever")


def test_deny_wins_whichever_pattern_it_has_and_whichever_came_first():
    for denying in (
        acl(READ, "*", deny=True),
        acl(READ, "o", PREFIXED, deny=True),
        acl(ALL, deny=True),
        acl(READ, principal="User:*", deny=True),
    ):
        for acls in ([acl(READ), denying], [denying, acl(READ)]):
            assert AclTable(acls).decide(ALICE, HERE, READ, Resource(TOPIC, "orders")).acl == denying


def test_a_user_a_host_and_everyone():
    assert not allows([acl(READ)], READ, principal="User:bob")
    assert not allows([acl(READ)], READ, principal="Group:alice")
    assert allows([acl(READ, principal="User:*")], READ, principal="User:bob")
    assert allows([acl(READ, host=HERE)], READ)
    assert not allows([acl(READ, host="10.0.0.2")], READ)


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_who_may_do_something_may_also_see_it(operation):
    assert allows([acl(operation)], DESCRIBE)
    # A denial of the one is no denial of the other.
    assert allows([acl(operation, deny=True), acl(DESCRIBE)], DESCRIBE)


def test_only_what_kafka_implies_is_implied():
    assert allows([acl(Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS)
    assert not allows([acl(Operation.ALTER_CONFIGS)], DESCRIBE)
    assert not allows([acl(Operation.CREATE)], DESCRIBE)
    assert not allows([acl(DESCRIBE)], READ)
    assert all(allows([acl(ALL)], operation) for operation in Operation)


def test_super_users_may_do_everything_even_what_is_denied():
    table = AclTable([acl(ALL, deny=True)], super_users=[ALICE])
    assert table.decide(ALICE, HERE, READ, Resource(TOPIC, "orders")) is SUPER_USER


def test_without_an_acl_on_the_resource_the_default_decides():
    other = [acl(READ, principal="User:bob")]
    resource, free = Resource(TOPIC, "orders"), Resource(TOPIC, "free")
    strict, open_ = AclTable(other), AclTable(other, allow_without_acl=True)
    assert strict.decide(ALICE, HERE, READ, free) is DEFAULT_DENY
    assert open_.decide(ALICE, HERE, READ, free) is DEFAULT_ALLOW
    # An ACL for somebody else is an ACL.
    assert open_.decide(ALICE, HERE, READ, resource) is DEFAULT_DENY
    assert AclTable([acl(READ, "f", PREFIXED)], allow_without_acl=True).decide(
        "User:bob", HERE, READ, free
    ) is (DEFAULT_DENY)


def test_an_acl_that_is_removed_decides_no_more():
    prefixed, literal = acl(READ, "ord", PREFIXED), acl(READ)
    table = AclTable([prefixed, literal])
    table.remove(prefixed)
    assert table.decide(ALICE, HERE, READ, Resource(TOPIC, "orders")).acl == literal
    table.remove(literal)
    assert table.decide(ALICE, HERE, READ, Resource(TOPIC, "orders")) is DEFAULT_DENY
    assert list(table) == []


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
some_acls = st.lists(
    st.builds(
        Acl,
        st.sampled_from([TOPIC, GROUP]),
        names,
        st.sampled_from([LITERAL, PREFIXED]),
        st.sampled_from([ALICE, "User:bob", "User:*"]),
        st.sampled_from([HERE, "*", "10.0.0.2"]),
        st.sampled_from([ALL, READ, WRITE, DESCRIBE, Operation.ALTER_CONFIGS]),
        st.sampled_from(list(Permission)),
    ),
    max_size=8,
    unique=True,
)


def slowly(acls, operation, kind, name, default):
    """The rules of the book, one ACL after the other."""
    implied = {
        DESCRIBE: {DESCRIBE, READ, WRITE, Operation.DELETE, Operation.ALTER},
        Operation.DESCRIBE_CONFIGS: {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS},
    }
    applying = [
        each
        for each in acls
        if each.resource_type == kind
        and (
            name.startswith(each.resource_name)
            if each.pattern_type == PREFIXED
            else each.resource_name in (name, "*")
        )
    ]
    mine = [each for each in applying if each.principal in (ALICE, "User:*") and each.host in (HERE, "*")]
    if any(each.permission == Permission.DENY and each.operation in (ALL, operation) for each in mine):
        return False
    if any(
        each.permission == Permission.ALLOW
        and (each.operation == ALL or each.operation in implied.get(operation, {operation}))
        for each in mine
    ):
        return True
    return default and not applying


@given(
    some_acls, some_acls, st.sampled_from([READ, DESCRIBE, Operation.DESCRIBE_CONFIGS]), names, st.booleans()
)
def test_the_table_decides_as_the_rules_read_one_by_one_do(acls, gone, operation, name, default):
    table = AclTable([*acls, *gone], allow_without_acl=default)
    for each in gone:
        table.remove(each)
    left = [each for each in acls if each not in gone]
    for kind in (TOPIC, GROUP):
        found = table.decide(ALICE, HERE, operation, Resource(kind, name))
        assert found.allowed is slowly(left, operation, kind, name, default)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl(WRITE, "not-there-yet")], True),
        ([acl(ALL, "x", PREFIXED)], True),
        ([acl(READ)], False),
        ([acl(WRITE, principal="User:bob")], False),
        ([acl(WRITE), acl(WRITE, deny=True)], False),
        ([acl(WRITE), acl(WRITE, "other", deny=True)], True),
        ([acl(WRITE), acl(ALL, "ord", PREFIXED, deny=True)], False),
        ([acl(WRITE, "ord", PREFIXED), acl(WRITE, deny=True)], True),
        ([acl(WRITE, "ord", PREFIXED), acl(WRITE, "o", PREFIXED, deny=True)], False),
        ([acl(WRITE, "*"), acl(WRITE, "o", PREFIXED, deny=True)], True),
        ([acl(WRITE, "*"), acl(WRITE, "*", deny=True)], False),
        ([acl(WRITE), acl(WRITE, "*", principal="User:*", deny=True)], False),
    ],
)
def test_whether_some_resource_is_allowed_whatever_its_name(acls, expected):
    assert AclTable(acls).may_on_any(ALICE, HERE, WRITE, TOPIC) is expected


def test_some_resource_is_allowed_to_super_users_and_where_everyone_is():
    denied = [acl(WRITE, "*", deny=True)]
    assert AclTable(denied, super_users=[ALICE]).may_on_any(ALICE, HERE, WRITE, TOPIC)
    assert AclTable(allow_without_acl=True).may_on_any(ALICE, HERE, WRITE, TOPIC)


def test_what_the_authorizer_remembers_is_forgotten_with_a_change():
    authorizer = StandardAuthorizer()
    asked = (ALICE, HERE, READ, Resource(TOPIC, "orders"))
    assert not authorizer.authorize(*asked)
    before = authorizer.generation
    authorizer.change([], [acl(READ)])
    assert authorizer.authorize(*asked)
    assert authorizer.generation > before
    authorizer.change([acl(READ)], [])
    assert not authorizer.authorize(*asked)


def test_the_authorizer_remembers_only_so_much(monkeypatch):
    monkeypatch.setattr("headrace.server.security.authorizer.MOST_REMEMBERED", 10)
    authorizer = StandardAuthorizer(allow_without_acl=True)
    for number in range(100):
        assert authorizer.authorize(ALICE, HERE, READ, Resource(TOPIC, str(number)))
    assert len(authorizer._remembered) <= 10


FILTERED = [
    acl(READ),
    acl(READ, "ord", PREFIXED),
    acl(WRITE, "*"),
    acl(READ, principal="User:bob", host=HERE, deny=True),
    acl(Operation.ALTER, *CLUSTER[1:], kind=CLUSTER.kind),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (AclFilter(), {0, 1, 2, 3, 4}),
        (AclFilter(resource_type=TOPIC), {0, 1, 2, 3}),
        (AclFilter(TOPIC, "orders", PatternType.ANY), {0, 3}),
        (AclFilter(TOPIC, "orders", PatternType.MATCH), {0, 1, 2, 3}),
        (AclFilter(TOPIC, "ordinary", PatternType.MATCH), {1, 2}),
        (AclFilter(TOPIC, "ord", LITERAL), set()),
        (AclFilter(TOPIC, "ord", PREFIXED), {1}),
        (AclFilter(TOPIC, None, LITERAL), {0, 2, 3}),
        (AclFilter(principal="User:bob"), {3}),
        (AclFilter(host=HERE), {3}),
        (AclFilter(operation=READ), {0, 1, 3}),
        (AclFilter(permission=Permission.DENY), {3}),
    ],
)
def test_a_filter_picks_what_kafka_picks(wanted, expected):
    assert {number for number, each in enumerate(FILTERED) if wanted.matches(each)} == expected
