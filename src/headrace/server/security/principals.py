"""Who is at the other end of a connection, written as Kafka writes it: `User:alice`."""

from __future__ import annotations

USER = "User:"
ANONYMOUS = f"{USER}ANONYMOUS"
"""A client that has not logged in, where it need not."""
