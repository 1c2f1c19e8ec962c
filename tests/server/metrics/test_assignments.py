"""What members of classic groups are assigned is bytes of a client's making: none of them costs the page more than itself."""

from headrace.server.groups.consumer_protocol import encode_assignment
from headrace.testing.wire import WireClient, batch
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.server.metrics.scraping import METRICS, Samples
from tests.waiting import until


def test_a_partition_that_is_assigned_twice_is_counted_once(make_broker):
    broker = make_broker(METRICS)
    broker.create_topic("t", 2)
    assigned = [TopicPartition("t", [0, 0, -1, 7]), TopicPartition("t", [0])]
    with WireClient(broker.bootstrap) as client:
        record = PartitionProduceData(0, batch(b"one"))
        client.call(ProduceRequest(None, 1, 1000, [TopicProduceData("t", partition_data=[record])]), 9)
        until(lambda: client.call(FindCoordinatorRequest("readers"), 2).error_code == 0)
        protocols = [JoinGroupRequestProtocol("range", b"")]
        joined = client.call(JoinGroupRequest("readers", 30_000, 30_000, "", None, "consumer", protocols), 3)
        data = encode_assignment(ConsumerProtocolAssignment(assigned), 0)
        own = [SyncGroupRequestAssignment(joined.member_id, data)]
        asked = SyncGroupRequest("readers", joined.generation_id, joined.member_id, assignments=own)
        assert client.call(asked, 3).error_code == 0
        where = {"consumergroup": "readers", "topic": "t", "partition": "0"}
        found = Samples(broker, "/metrics?partitions=all")
        assert found.of("kafka_consumergroup_lag", **where) == [1]
        assert found.of("kafka_consumergroup_lag_sum", consumergroup="readers") == [1]
