"""What a principal may not see is left out of lists, offsets and replies, and so is its name."""

from headrace.server.security.operations import Operation
from headrace.testing.topics import unique_name
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import describe_topic_partitions as dtp
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_commit as oc
from headrace.wire.messages import offset_fetch as of
from headrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from headrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from headrace.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.server.api.authorization.requests import codes, commit_of
from tests.server.api.authorization.rules import GROUP, TOPIC, TXN


def test_the_settings_of_a_new_topic_are_told_only_to_those_who_may_see_them(wire, rules):
    name = unique_name("made")
    rules.deny(Operation.DESCRIBE_CONFIGS, TOPIC, name)
    (made,) = wire.ask(
        ct.CreateTopicsRequest([ct.CreatableTopic(name, 3, 1)]), 7, ct.CreateTopicsResponse
    ).topics
    assert made.error_code == ErrorCode.NONE
    assert made.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (made.num_partitions, made.configs) == (-1, [])


def test_a_topic_nobody_may_see_is_not_in_the_list(wire, rules, topic):
    def listed():
        return {each.name for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics}

    def paged():
        answer = wire.ask(dtp.DescribeTopicPartitionsRequest(), 0, dtp.DescribeTopicPartitionsResponse)
        return {each.name for each in answer.topics}

    assert topic in listed() & paged()
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert topic not in listed() | paged()


def test_a_hidden_topic_asked_for_by_id_does_not_tell_its_name(wire, rules, topic):
    (known,) = wire.ask(
        md.MetadataRequest([md.MetadataRequestTopic(name=topic)]), 12, md.MetadataResponse
    ).topics
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    by_id = md.MetadataRequest([md.MetadataRequestTopic(known.topic_id, None)])
    (answer,) = wire.ask(by_id, 12, md.MetadataResponse).topics
    assert (answer.error_code, answer.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    deletion = dt.DeleteTopicsRequest(topics=[dt.DeleteTopicState(None, known.topic_id)])
    (answer,) = wire.ask(deletion, 6, dt.DeleteTopicsResponse).responses
    assert (answer.error_code, answer.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)


def test_groups_are_listed_for_those_who_may_see_them(wire, rules, topic):
    group = unique_name("group")
    wire.ask(
        FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4, FindCoordinatorRequest().reply_type()
    )
    assert codes(wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)) == {ErrorCode.NONE}

    def listed():
        return {each.group_id for each in wire.ask(ListGroupsRequest(), 4, ListGroupsResponse).groups}

    rules.deny(Operation.DESCRIBE, GROUP, group)
    assert group in listed()  # a principal that may describe the cluster sees every group
    rules.deny_on_cluster(Operation.DESCRIBE)
    assert group not in listed()


def test_offsets_of_hidden_topics_are_left_out_of_all_offsets(wire, rules, topic):
    group = unique_name("group")
    wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)
    request = of.OffsetFetchRequest(groups=[of.OffsetFetchRequestGroup(group)])

    def names():
        return [each.name for each in wire.ask(request, 8, of.OffsetFetchResponse).groups[0].topics]

    assert names() == [topic]
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert names() == []


def test_transactions_are_listed_for_those_who_may_see_them(wire, rules):
    transactional_id = unique_name("tx")
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    wire.ask(find, 4, find.reply_type())
    request = InitProducerIdRequest(transactional_id, 1000)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.NONE}

    def listed():
        answer = wire.ask(ListTransactionsRequest(), 0, ListTransactionsResponse)
        return {each.transactional_id for each in answer.transaction_states}

    assert transactional_id in listed()
    rules.deny(Operation.DESCRIBE, TXN, transactional_id)
    assert transactional_id not in listed()


def test_authorized_operations_are_those_the_authorizer_allows(wire, rules, topic):
    def bits(*operations):
        return sum(1 << each for each in operations)

    group = unique_name("group")
    wire.ask(commit_of(topic, group), 8, oc.OffsetCommitResponse)
    rules.deny(Operation.WRITE, TOPIC, topic)
    rules.deny(Operation.DELETE, GROUP, group)
    rules.deny_on_cluster(Operation.ALTER)
    asked = md.MetadataRequest([md.MetadataRequestTopic(name=topic)], True, True, True)
    metadata = wire.ask(asked, 9, md.MetadataResponse)
    assert metadata.topics[0].topic_authorized_operations == 3576 - bits(Operation.WRITE)
    assert metadata.cluster_authorized_operations == 8096 - bits(Operation.ALTER)
    cluster = wire.ask(DescribeClusterRequest(True), 1, DescribeClusterResponse)
    assert cluster.cluster_authorized_operations == 8096 - bits(Operation.ALTER)
    (described,) = wire.ask(DescribeGroupsRequest([group], True), 5, DescribeGroupsResponse).groups
    assert described.authorized_operations == 3400 - bits(Operation.DELETE)
    rules.deny_on_cluster(Operation.DESCRIBE)
    cluster = wire.ask(DescribeClusterRequest(True), 1, DescribeClusterResponse)
    assert cluster.cluster_authorized_operations == 0
