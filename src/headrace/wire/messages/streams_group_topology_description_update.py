"""StreamsGroupTopologyDescriptionUpdate (API key 93). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class TopologyDescriptionNode(Message):
    __slots__ = ("name", "node_type", "sink_topic", "source_topics", "stores", "successors")
    FLEXIBLE = 0
    FIELDS = (
        Field("name", "string", (0, ALWAYS), default=""),
        Field("node_type", "int8", (0, ALWAYS), default=0),
        Field("source_topics", "string", (0, ALWAYS), array=True),
        Field("sink_topic", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("stores", "string", (0, ALWAYS), array=True),
        Field("successors", "string", (0, ALWAYS), array=True),
    )

    def __init__(
        self,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] | None = None,
        sink_topic: str | None = None,
        stores: list[str] | None = None,
        successors: list[str] | None = None,
    ) -> None:
        self.name = name
        self.node_type = node_type
        self.source_topics = [] if source_topics is None else source_topics
        self.sink_topic = sink_topic
        self.stores = [] if stores is None else stores
        self.successors = [] if successors is None else successors


class TopologyDescriptionSubtopology(Message):
    __slots__ = ("nodes", "subtopology_id")
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopology_id", "string", (0, ALWAYS), default=""),
        Field("nodes", "struct", (0, ALWAYS), array=True, struct=TopologyDescriptionNode),
    )

    def __init__(
        self,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.nodes = [] if nodes is None else nodes


class TopologyDescriptionGlobalStore(Message):
    __slots__ = ("processor", "source")
    FLEXIBLE = 0
    FIELDS = (
        Field("source", "struct", (0, ALWAYS), struct=TopologyDescriptionNode),
        Field("processor", "struct", (0, ALWAYS), struct=TopologyDescriptionNode),
    )

    def __init__(
        self,
        source: TopologyDescriptionNode | None = None,
        processor: TopologyDescriptionNode | None = None,
    ) -> None:
        self.source = TopologyDescriptionNode() if source is None else source
        self.processor = TopologyDescriptionNode() if processor is None else processor


class TopologyDescription(Message):
    __slots__ = ("global_stores", "subtopologies")
    FLEXIBLE = 0
    FIELDS = (
        Field("subtopologies", "struct", (0, ALWAYS), array=True, struct=TopologyDescriptionSubtopology),
        Field("global_stores", "struct", (0, ALWAYS), array=True, struct=TopologyDescriptionGlobalStore),
    )

    def __init__(
        self,
        subtopologies: list[TopologyDescriptionSubtopology] | None = None,
        global_stores: list[TopologyDescriptionGlobalStore] | None = None,
    ) -> None:
        self.subtopologies = [] if subtopologies is None else subtopologies
        self.global_stores = [] if global_stores is None else global_stores


class StreamsGroupTopologyDescriptionUpdateRequest(Request["StreamsGroupTopologyDescriptionUpdateResponse"]):
    __slots__ = ("group_id", "member_id", "topology_description", "topology_epoch")
    API_KEY = 93
    VERSIONS = (0, 0)
    FLEXIBLE = 0
    FIELDS = (
        Field("group_id", "string", (0, ALWAYS), default=""),
        Field("member_id", "string", (0, ALWAYS), default=""),
        Field("topology_epoch", "int32", (0, ALWAYS), default=0),
        Field("topology_description", "struct", (0, ALWAYS), struct=TopologyDescription),
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: TopologyDescription | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.topology_epoch = topology_epoch
        self.topology_description = (
            TopologyDescription() if topology_description is None else topology_description
        )

    @classmethod
    def reply_type(cls) -> type[StreamsGroupTopologyDescriptionUpdateResponse]:
        return StreamsGroupTopologyDescriptionUpdateResponse


class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    __slots__ = ("error_code", "error_message", "throttle_time_ms")
    API_KEY = 93
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
