"""DescribeCluster (API key 60). Made by tools/generate_messages.py: change that."""

from __future__ import annotations

from headrace.wire.schema import ALWAYS, Field, Message, Request, Response


class DescribeClusterRequest(Request["DescribeClusterResponse"]):
    __slots__ = ("endpoint_type", "include_cluster_authorized_operations", "include_fenced_brokers")
    API_KEY = 60
    VERSIONS = (0, 2)
    FLEXIBLE = 0
    FIELDS = (
        Field("include_cluster_authorized_operations", "bool", (0, ALWAYS), default=False),
        Field("endpoint_type", "int8", (1, ALWAYS), default=1),
        Field("include_fenced_brokers", "bool", (2, ALWAYS), default=False),
    )

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers

    @classmethod
    def reply_type(cls) -> type[DescribeClusterResponse]:
        return DescribeClusterResponse


class DescribeClusterBroker(Message):
    __slots__ = ("broker_id", "host", "is_fenced", "port", "rack")
    FLEXIBLE = 0
    FIELDS = (
        Field("broker_id", "int32", (0, ALWAYS), default=0),
        Field("host", "string", (0, ALWAYS), default=""),
        Field("port", "int32", (0, ALWAYS), default=0),
        Field("rack", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("is_fenced", "bool", (2, ALWAYS), default=False),
    )

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Response):
    __slots__ = (
        "brokers",
        "cluster_authorized_operations",
        "cluster_id",
        "controller_id",
        "endpoint_type",
        "error_code",
        "error_message",
        "throttle_time_ms",
    )
    API_KEY = 60
    FLEXIBLE = 0
    FIELDS = (
        Field("throttle_time_ms", "int32", (0, ALWAYS), default=0),
        Field("error_code", "int16", (0, ALWAYS), default=0),
        Field("error_message", "string", (0, ALWAYS), nullable=(0, ALWAYS)),
        Field("endpoint_type", "int8", (1, ALWAYS), default=1),
        Field("cluster_id", "string", (0, ALWAYS), default=""),
        Field("controller_id", "int32", (0, ALWAYS), default=-1),
        Field("brokers", "struct", (0, ALWAYS), array=True, struct=DescribeClusterBroker),
        Field("cluster_authorized_operations", "int32", (0, ALWAYS), default=-2147483648),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | None = None,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is None else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
