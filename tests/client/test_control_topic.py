"""Control topics survive a restart and the loss of a broker."""

from headrace.client import Admin, Producer
from headrace.client.control_topic import ControlTopic
from headrace.testing import cluster


def test_a_control_topic_has_three_replicas_where_there_are_three_brokers(tmp_path) -> None:
    with cluster.threads(tmp_path, 3) as brokers, Admin(brokers.bootstrap) as admin:
        topic = ControlTopic("__headrace_test", {"bootstrap.servers": brokers.bootstrap})
        topic.ensure(admin)
        (partition,) = admin.topic("__headrace_test").partitions
        assert len(partition.replicas) == 3


def test_the_newest_document_of_each_key_is_read_and_none_removes_one(bootstrap: str, admin: Admin) -> None:
    topic = ControlTopic("__headrace_test_table", {"bootstrap.servers": bootstrap})
    assert topic.read(admin) == {}
    topic.ensure(admin)
    with Producer(bootstrap) as producer:
        topic.put(producer, "a", {"n": 1})
        topic.put(producer, "b", {"n": 2})
        topic.put(producer, "a", {"n": 3})
        topic.put(producer, "b", None)
    assert topic.read(admin) == {"a": {"n": 3}}
    (partition,) = admin.topic("__headrace_test_table").partitions
    assert len(partition.replicas) == 1
