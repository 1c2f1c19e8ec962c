"""What goes wrong on the client's side of a connection."""

from __future__ import annotations


class SettingsError(ValueError):
    """An unusable setting; the message is a sentence that says what to write instead."""


class BrokerUnavailable(ConnectionError):
    """A broker that cannot be reached, or a connection that ended before the reply; worth another try."""


class BrokerDistrusted(BrokerUnavailable):
    """A broker that is there, but refuses our login or has a certificate that we do not trust: trying again does not help by itself."""
