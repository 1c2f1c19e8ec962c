"""What the controller bases its decisions on."""

from headrace.server.cluster.changes import BrokerChanged, TopicCreated
from headrace.server.cluster.config_changes import ConfigOp, OpType
from headrace.server.cluster.decisions import incremental_alter_configs
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.ids import random_id
from headrace.server.cluster.image import (
    Broker,
    ConfigResource,
    MetadataImage,
    Partition,
    ResourceType,
    Topic,
)
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.situation import Situation
from headrace.server.config.broker import BrokerConfig

UNCLEAN_ELECTION = "unclean.leader.election.enable"
TOPIC = ConfigResource(ResourceType.TOPIC, "orders")
CLUSTER = ConfigResource(ResourceType.BROKER, "")
CONTROLLER = ConfigResource(ResourceType.BROKER, "1")
ANOTHER = ConfigResource(ResourceType.BROKER, "2")


def situation(**settings: str) -> Situation:
    return Situation(MetadataImage(), BrokerConfig.load(settings), controller_id=1)


def allow(resource: ConfigResource, value: str = "true") -> ConfigsChanged:
    return ConfigsChanged(resource, {UNCLEAN_ELECTION: value})


def test_a_topics_own_setting_decides_about_unclean_election_before_the_controllers() -> None:
    now = situation(**{UNCLEAN_ELECTION: "true"})
    assert now.unclean("orders")
    assert not now.after([allow(TOPIC, "false")]).unclean("orders")
    assert now.after([allow(TOPIC, "false")]).unclean("another")


def test_settings_count_as_the_latest_image_has_them() -> None:
    now = situation()
    assert not now.unclean("orders")
    assert now.after([allow(CLUSTER)]).unclean("orders")
    assert now.after([allow(CONTROLLER)]).unclean("orders")
    assert not now.after([allow(ANOTHER)]).unclean("orders")
    assert not now.after([allow(CLUSTER)]).after([allow(CONTROLLER, "false")]).unclean("orders")


def test_settings_that_newly_allow_unclean_election_elect_in_the_same_decision() -> None:
    state = Partition((2, 3), (3,), -1)
    image = apply_changes(
        MetadataImage(),
        0,
        [
            BrokerChanged(Broker(1, 1, ())),
            BrokerChanged(Broker(2, 2, ())),
            BrokerChanged(Broker(3, 3, (), fenced=True)),
            TopicCreated(Topic("orders", random_id(), (state,))),
        ],
    )
    now = situation().at(image)
    decide = incremental_alter_configs({TOPIC: [ConfigOp(UNCLEAN_ELECTION, OpType.SET, "true")]})
    after = now.after(decide(now).changes)
    elected = after.image.partition("orders", 0)
    assert elected is not None
    assert (elected.leader, elected.isr, elected.recovering) == (2, (2,), True)
