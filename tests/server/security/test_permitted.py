"""What the record path remembers is forgotten with every change of ACLs, also by a request that holds on to it."""

from headrace.server.security import permitted
from headrace.server.security.authorizer import StandardAuthorizer
from headrace.server.security.operations import Operation
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
