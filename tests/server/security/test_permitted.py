"""What the record path remembers is forgotten with every change of ACLs, also by a request that holds on to it."""

from headrace.server.security import permitted
from headrace.server.security.audit import AUDIT, record
from headrace.server.security.authorizer import StandardAuthorizer
from headrace.server.security.operations import Operation, Resource, ResourceKind
from headrace.server.security.permitted import PermittedTopics

WHO = ("User:alice", "10.0.0.1", Operation.WRITE)


def test_clients_operations_and_kinds_of_names_are_kept_apart():
    acls = StandardAuthorizer()
    topics = PermittedTopics(acls)
    topics.add(topics.of(*WHO, False), b"orders", acls.generation)
    assert b"orders" in topics.of(*WHO, False)
    assert b"orders" not in topics.of(*WHO, True)
    assert b"orders" not in topics.of("User:alice", "10.0.0.2", Operation.WRITE, False)
    assert b"orders" not in topics.of("User:bob", "10.0.0.1", Operation.WRITE, False)
    assert b"orders" not in topics.of("User:alice", "10.0.0.1", Operation.READ, False)


def test_a_change_empties_what_a_waiting_request_holds():
    acls = StandardAuthorizer()
    topics = PermittedTopics(acls)
    held = topics.of(*WHO, False)
    topics.add(held, b"orders", acls.generation)
    acls.change([], [])
    assert b"orders" not in held
    # It may fill it again, and the next change still reaches it.
    topics.add(held, b"orders", acls.generation)
    assert b"orders" in held
    acls.change([], [])
    assert b"orders" not in held


def test_a_decision_by_old_acls_that_comes_late_is_not_kept():
    acls = StandardAuthorizer()
    topics = PermittedTopics(acls)
    decided_by, held = acls.generation, topics.of(*WHO, False)
    acls.change([], [])
    topics.add(held, b"orders", decided_by)
    assert b"orders" not in held


def test_only_so_much_is_kept(monkeypatch):
    monkeypatch.setattr(permitted, "MOST_KNOWN", 10)
    acls = StandardAuthorizer()
    topics = PermittedTopics(acls)
    for number in range(100):
        topics.add(topics.of(*WHO, False), b"%d" % number, acls.generation)
    for number in range(100):
        topics.add(topics.of(f"User:{number}", "10.0.0.1", Operation.READ, False), b"t", acls.generation)
    assert sum(map(len, topics._in_use)) <= 12


def test_while_every_decision_is_to_be_logged_none_is_remembered():
    acls = StandardAuthorizer()
    topics = PermittedTopics(acls)
    held = topics.of(*WHO, False)
    topics.add(held, b"orders", acls.generation)
    before = AUDIT.level
    try:
        AUDIT.setLevel("DEBUG")
        topics.follow_audit_log()
        topics.add(held, b"orders", acls.generation)
        assert b"orders" not in held
    finally:
        AUDIT.setLevel(before)
    topics.follow_audit_log()
    topics.add(held, b"orders", acls.generation)
    assert b"orders" in held


def test_names_that_a_client_makes_up_do_not_fill_the_memory():
    authorizer = StandardAuthorizer()
    for length in (3, 30_000):
        authorizer.authorize("User:eve", "h", Operation.READ, Resource(ResourceKind.GROUP, "x" * length))
    assert [len(asked[3].name) for asked in authorizer._remembered] == [3]


def test_a_name_cannot_pretend_to_be_another_line_of_the_audit_log(caplog):
    caplog.set_level("INFO", "kafka.authorizer.logger")
    group = Resource(ResourceKind.GROUP, "g\nPrincipal = User:eve is Allowed")
    record("User:eve", "h", Operation.READ, group, False, "none", "JoinGroup")
    assert "\n" not in caplog.messages[0]
