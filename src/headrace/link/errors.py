"""What goes wrong on the client's side of a connection."""

from __future__ import annotations


class SettingsError(ValueError):
    """An unusable setting; the message is a sentence that says what to write instead."""


class BrokerUnavailable(ConnectionError):
    """A broker that cannot be reached, or a connection that ended before the reply; worth another try."""
