"""The APIs this broker serves. A row here is what advertises an API and its versions; the module of the same name
in this package handles it, with the messages of the same name in `wire/messages`. Both are imported at first use.

A handler module has one of two functions:
- `handle(context, request)` takes the decoded request and returns the response (or a whole reply frame), or a
  coroutine or a promise that will; the connection serves nothing else until then.
- `handle_frame(context, frame, position)` reads the frame itself and sends its own reply (Produce, Fetch, OffsetCommit).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from headrace.server.net.request_times import FETCH, FOLLOWER_FETCH
from headrace.wire.schema import Request, Response

SERVED: dict[str, tuple[int, int, int]] = {
    # name: (key, lowest version, highest version)
    "produce": (0, 0, 13),
    "fetch": (1, 4, 18),
    "list_offsets": (2, 0, 11),
    "metadata": (3, 0, 13),
    "offset_commit": (8, 2, 10),
    "offset_fetch": (9, 1, 10),
    "find_coordinator": (10, 0, 6),
    "join_group": (11, 0, 9),
    "heartbeat": (12, 0, 4),
    "leave_group": (13, 0, 5),
    "sync_group": (14, 0, 5),
    "describe_groups": (15, 0, 6),
    "list_groups": (16, 0, 5),
    "sasl_handshake": (17, 0, 1),
    "api_versions": (18, 0, 5),
    "create_topics": (19, 2, 7),
    "delete_topics": (20, 1, 6),
    "delete_records": (21, 0, 2),
    "init_producer_id": (22, 0, 5),
    "offset_for_leader_epoch": (23, 2, 4),
    "add_partitions_to_txn": (24, 0, 5),
    "add_offsets_to_txn": (25, 0, 4),
    "end_txn": (26, 0, 5),
    "write_txn_markers": (27, 1, 2),
    "txn_offset_commit": (28, 0, 6),
    "describe_acls": (29, 1, 3),
    "create_acls": (30, 1, 3),
    "delete_acls": (31, 1, 3),
    "describe_configs": (32, 1, 4),
    "alter_configs": (33, 0, 2),
    "alter_replica_log_dirs": (34, 1, 2),
    "describe_log_dirs": (35, 1, 5),
    "sasl_authenticate": (36, 0, 2),
    "create_partitions": (37, 0, 3),
    "create_delegation_token": (38, 1, 3),
    "renew_delegation_token": (39, 1, 2),
    "expire_delegation_token": (40, 1, 2),
    "describe_delegation_token": (41, 1, 3),
    "delete_groups": (42, 0, 3),
    "elect_leaders": (43, 0, 2),
    "incremental_alter_configs": (44, 0, 1),
    "alter_partition_reassignments": (45, 0, 1),
    "list_partition_reassignments": (46, 0, 0),
    "offset_delete": (47, 0, 0),
    "describe_client_quotas": (48, 0, 1),
    "alter_client_quotas": (49, 0, 1),
    "describe_user_scram_credentials": (50, 0, 0),
    "alter_user_scram_credentials": (51, 0, 0),
    "describe_quorum": (55, 0, 2),
    "update_features": (57, 0, 2),
    "describe_cluster": (60, 0, 2),
    "describe_producers": (61, 0, 0),
    "unregister_broker": (64, 0, 0),
    "describe_transactions": (65, 0, 0),
    "list_transactions": (66, 0, 2),
    "consumer_group_heartbeat": (68, 0, 1),
    "consumer_group_describe": (69, 0, 1),
    "get_telemetry_subscriptions": (71, 0, 0),
    "push_telemetry": (72, 0, 0),
    "list_config_resources": (74, 0, 1),
    "describe_topic_partitions": (75, 0, 0),
    "share_group_heartbeat": (76, 1, 1),
    "share_group_describe": (77, 1, 1),
    "share_fetch": (78, 1, 2),
    "share_acknowledge": (79, 1, 2),
    "initialize_share_group_state": (83, 0, 0),
    "read_share_group_state": (84, 0, 0),
    "write_share_group_state": (85, 0, 1),
    "delete_share_group_state": (86, 0, 0),
    "read_share_group_state_summary": (87, 0, 1),
    "describe_share_group_offsets": (90, 0, 1),
    "alter_share_group_offsets": (91, 0, 0),
    "delete_share_group_offsets": (92, 0, 0),
}

FETCHES = {FETCH: "FetchConsumer", FOLLOWER_FETCH: "FetchFollower"}

BETWEEN_BROKERS: dict[str, tuple[int, int, int]] = {
    # Served, but not advertised: clients have no use for them.
    "alter_partition": (56, 2, 3),
    "allocate_producer_ids": (67, 0, 0),
    "report_mirrors": (20002, 0, 0),
}

OF_OUR_OWN: dict[str, tuple[int, int, int]] = {
    # Served, but not advertised: no client of Kafka's knows them. Our commands look for the feature that comes with them.
    "alter_mirrors": (20000, 0, 0),
    "describe_mirrors": (20001, 0, 0),
}


def name_of(key: int) -> str:
    """As Kafka's metrics name requests: those of followers are apart from those of consumers."""
    if key in FETCHES:
        return FETCHES[key]
    api = APIS.get(key)
    return "".join(part.capitalize() for part in api.name.split("_")) if api is not None else f"Unknown{key}"


class Api:
    """A served API; its message classes and handler are available after `load`."""

    __slots__ = (
        "handle",
        "handle_frame",
        "highest",
        "key",
        "lowest",
        "name",
        "request",
        "response",
    )

    request: type[Request]
    response: type[Response]
    handle: Callable[..., Any] | None
    handle_frame: Callable[..., None] | None

    def __init__(self, name: str, key: int, lowest: int, highest: int) -> None:
        self.name = name
        self.key = key
        self.lowest = lowest
        self.highest = highest
        self.handle = self.handle_frame = None

    def load(self) -> None:
        title = "".join(part.capitalize() for part in self.name.split("_"))
        messages = importlib.import_module(f"headrace.wire.messages.{self.name}")
        module = importlib.import_module(f"headrace.server.api.{self.name}")
        self.request = getattr(messages, f"{title}Request")
        self.response = self.request.reply_type()
        self.handle_frame = getattr(module, "handle_frame", None)
        self.handle = getattr(module, "handle", None)


APIS: dict[int, Api] = {
    key: Api(name, key, low, high)
    for name, (key, low, high) in (SERVED | BETWEEN_BROKERS | OF_OUR_OWN).items()
}
ADVERTISED = sorted(key for key, _, _ in SERVED.values())
