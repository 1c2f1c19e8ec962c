"""`headrace acls` and kafka-acls.sh: ACLs made, shown, removed and explained."""

import pytest

from headrace.server.config.authorization import STANDARD
from headrace.testing.broker import BrokerThread


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS;User:CN=a,O=b"}
    running = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def start_without_acls(broker):
    async def remove_all(node):
        from headrace.server.cluster.decisions import delete_acls
        from headrace.server.security.acls import AclFilter

        await node.cluster.decide(delete_acls([AclFilter()]))

    broker.run(remove_all)


def test_acls_are_added_listed_and_removed(headrace):
    assert headrace("acls", "list").out == "There are no ACLs.\n"
    added = headrace("acls", "add", "alice", "write,create", "topic:orders-*")
    assert added.lines == [
        "Allowed User:alice write on topic:orders-*.",
        "Allowed User:alice create on topic:orders-*.",
    ]
    denied = headrace("acls", "add", "*", "read", "topic:orders-1", "--deny", "--host", "10.0.0.7")
    assert denied.lines == ["Denied User:* read on topic:orders-1 from 10.0.0.7."]
    assert [line.split() for line in headrace("acls", "list").lines] == [
        ["PERMISSION", "PRINCIPAL", "OPERATION", "RESOURCE", "HOST"],
        ["allow", "User:alice", "write", "topic:orders-*", "*"],
        ["allow", "User:alice", "create", "topic:orders-*", "*"],
        ["deny", "User:*", "read", "topic:orders-1", "10.0.0.7"],
    ]
    assert [
        each["permission"] for each in headrace("acls", "list", "--resource", "topic:orders-1", "--json").json
    ] == [
        "ALLOW",
        "ALLOW",
        "DENY",
    ]
    assert len(headrace("acls", "list", "--user", "alice", "--json").json) == 2
    removed = headrace("acls", "remove", "alice", "write", "topic:orders-*", "--json").json
    assert removed == [
        {
            "permission": "ALLOW",
            "principal": "User:alice",
            "host": "*",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource_name": "orders-",
            "pattern_type": "PREFIXED",
        }
    ]
    assert headrace("acls", "remove", "alice", "any", "any").lines[0] == "Removed 1 ACL:"
    nothing = headrace("acls", "remove", "alice", "any", "any")
    assert (nothing.code, nothing.err) == (
        1,
        "headrace: There is no such ACL; 'headrace acls list' shows those there are.\n",
    )


def test_explain_says_yes_or_no_and_by_which_rule(headrace):
    headrace("acls", "add", "alice", "write", "topic:orders")
    headrace("acls", "add", "*", "write", "topic:*", "--deny", "--host", "10.0.0.7")
    yes = headrace("acls", "explain", "alice", "describe", "topic:orders")
    assert (yes.code, yes.lines[0]) == (0, "Yes: by an ACL.")
    assert yes.lines[2].split() == ["allow", "User:alice", "write", "topic:orders", "*"]
    no = headrace("acls", "explain", "User:alice", "write", "topic:orders", "--host", "10.0.0.7", "--json")
    assert no.code == 1
    assert (no.json["allowed"], no.json["acl"]["host"]) == (False, "10.0.0.7")
    neither = headrace("acls", "explain", "bob", "read", "topic:orders")
    assert (neither.code, neither.out) == (1, "No: the resource has ACLs, and none of them allows it.\n")
    default = headrace("acls", "explain", "bob", "read", "group:g")
    assert default.out == "No: no ACL allows it, and allow.everyone.if.no.acl.found is false.\n"
    super_user = headrace("acls", "explain", "User:CN=a,O=b", "alter", "cluster")
    assert (super_user.code, super_user.out) == (0, "Yes: User:CN=a,O=b is among super.users.\n")


def test_without_an_authorizer_everything_is_allowed_and_no_acl_can_be_made(headrace, tmp_path):
    with BrokerThread(tmp_path) as open_broker:
        at = ("--bootstrap-server", open_broker.bootstrap)
        answer = headrace("acls", "explain", "bob", "read", "topic:t", *at)
        assert answer.out == "Yes: the brokers have no authorizer, so everyone may do everything.\n"
        refused = headrace("acls", "add", "bob", "read", "topic:t", *at)
        assert (refused.code, refused.err) == (1, "headrace: No Authorizer is configured on the broker.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("bob", "reed", "topic:t"), "There is no operation 'reed'. Did you mean 'read'?"),
        (("bob", "create", "group:g"), "The operation create means nothing for a group"),
        (("bob", "read", "tpic:t"), "not 'tpic:t'. Did you mean 'topic'?"),
        (("bob", "read", "topic"), "Say which topic: topic:NAME, topic:PREFIX* or topic:*."),
        (("bob", "alter", "cluster:two"), "There is one cluster: write cluster."),
        ((" ", "read", "topic:t"), "A user has a name"),
    ],
)
def test_a_mistake_is_answered_with_one_sentence(headrace, arguments, sentence):
    ran = headrace("acls", "add", *arguments)
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


def test_kafkas_tool_adds_lists_and_removes(headrace):
    added = headrace(
        "kafka",
        "acls",
        "--add",
        "--allow-principal",
        "User:alice",
        "--producer",
        "--topic",
        "orders",
        "--idempotent",
    )
    assert added.out == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`: \n"
        " \t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)\n"
        "\t(principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW)\n"
        "\t(principal=User:alice, host=*, operation=CREATE, permissionType=ALLOW)\n"
        "\n"
        "Adding ACLs for resource `ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)`: \n"
        " \t(principal=User:alice, host=*, operation=IDEMPOTENT_WRITE, permissionType=ALLOW)\n"
        "\n"
    )
    consumer = ("--consumer", "--topic", "orders", "--group", "g", "--allow-principal", "User:bob")
    assert headrace("kafka", "acls", "--add", *consumer, "--allow-host", "10.0.0.1").code == 0
    prefixed = ("--resource-pattern-type", "prefixed", "--topic", "ord", "--deny-principal", "User:eve")
    assert headrace("kafka", "acls", "--add", *prefixed, "--operation", "read").code == 0
    matching = headrace("kafka", "acls", "--list", "--topic", "ordinary", "--resource-pattern-type", "match")
    assert matching.out == (
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=ord, patternType=PREFIXED)`:\n"
        "\t(principal=User:eve, host=*, operation=READ, permissionType=DENY)\n\n"
    )
    of_bob = headrace("kafka", "acls", "--list", "--principal", "User:bob")
    assert of_bob.lines[0] == "ACLs for principal `User:bob`"
    assert of_bob.out.count("host=10.0.0.1") == 3
    question = (
        "Are you sure you want to delete all ACLs for resource filter "
        "`ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`? (y/n)\n"
    )
    assert headrace("kafka", "acls", "--remove", "--topic", "orders", stdin="n\n").out == question
    assert "name=orders" in headrace("kafka", "acls", "--list").out
    assert headrace("kafka", "acls", "--remove", "--topic", "orders", stdin="y\n").out == question
    assert "name=orders" not in headrace("kafka", "acls", "--list").out
    one = ("--allow-principal", "User:bob", "--allow-host", "10.0.0.1", "--operation", "Read", "--group", "g")
    assert headrace("kafka", "acls", "--remove", "--force", *one).out == ""
    assert "name=g" not in headrace("kafka", "acls", "--list").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Command must include exactly one action: --list, --add, --remove."),
        (("--add", "--list"), "Command must include exactly one action: --list, --add, --remove."),
        (
            ("--add",),
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group>",
        ),
        (
            ("--add", "--topic", "t"),
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.",
        ),
        (
            ("--add", "--topic", "t", "--allow-principal", "alice"),
            "expected a string in format principalType:principalName but got alice",
        ),
        (
            ("--add", "--group", "g", "--allow-principal", "User:a", "--operation", "Create"),
            "ResourceType GROUP only supports operations [READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL]",
        ),
        (
            ("--add", "--topic", "t", "--allow-principal", "User:a", "--resource-pattern-type", "match"),
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls.",
        ),
        (
            ("--add", "--producer", "--allow-principal", "User:a"),
            "With --producer you must specify a --topic",
        ),
        (("--list", "--idempotent"), "The --idempotent option is only available if --producer is set"),
        (
            ("--add", "--consumer", "--topic", "t", "--allow-principal", "User:a"),
            "With --consumer you must specify",
        ),
        (("--remove", "--principal", "User:a"), "The --principal option is only available if --list is set"),
        (("--list", "--producer", "--topic", "t"), 'Option "[list]" can\'t be used with option "[producer]"'),
    ],
)
def test_kafkas_tool_refuses_what_kafka_refuses(headrace, arguments, sentence):
    ran = headrace("kafka", "acls", *arguments)
    assert ran.code == 1
    assert sentence in ran.err
