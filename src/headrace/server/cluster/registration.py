"""What a broker writes about itself under /brokers/ids/N, an ephemeral node."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from headrace.server.cluster.image import Broker, Endpoint

BROKER_IDS = "/brokers/ids"


@dataclass(frozen=True, slots=True)
class Registration:
    """`directory` identifies the data the broker has locked; it stays the same across restarts."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    directory: str
    rack: str | None = None
    host: str | None = None
    kept_its_data: bool = True
    """False when the disk is new or the machine crashed: acknowledged records may be missing."""
    stopped_cleanly: bool = True
    previous_epoch: int = -1
    """The epoch in which the data was last used, according to the data; -1 when it does not say."""
    stopping: bool = False
    """Asks the controller to move leadership away."""
    disk_full: bool = False
    """Asks the controller to let others lead, where they can, until there is room."""
    cordoned: bool = False
    """Asks the controller to place no new replicas here: all data directories are cordoned."""

    @property
    def path(self) -> str:
        return f"{BROKER_IDS}/{self.broker_id}"

    def encode(self) -> bytes:
        return json.dumps(
            {
                "endpoints": [list(endpoint) for endpoint in self.endpoints],
                "directory": self.directory,
                "rack": self.rack,
                "host": self.host,
                "kept_its_data": self.kept_its_data,
                "stopped_cleanly": self.stopped_cleanly,
                "previous_epoch": self.previous_epoch,
                "stopping": self.stopping,
                "disk_full": self.disk_full,
                "cordoned": self.cordoned,
            }
        ).encode()

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> Registration:
        fields = json.loads(data)
        return cls(
            broker_id,
            tuple(Endpoint(*endpoint) for endpoint in fields["endpoints"]),
            fields["directory"],
            fields["rack"],
            fields["host"],
            fields["kept_its_data"],
            fields["stopped_cleanly"],
            fields.get("previous_epoch", -1),  # Older versions do not write it.
            fields["stopping"],
            fields.get("disk_full", False),
            fields.get("cordoned", False),
        )

    def after_lost_session(self) -> Registration:
        """The registration of a broker that lost its session but never stopped."""
        return replace(self, kept_its_data=True, stopped_cleanly=False, previous_epoch=-1, stopping=False)

    def broker(self, epoch: int) -> Broker:
        return Broker(self.broker_id, epoch, self.endpoints, self.rack, self.host)
