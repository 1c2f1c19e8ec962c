"""What goes wrong in a SASL exchange."""

from __future__ import annotations


class SaslError(ConnectionError):
    """The other side refused the login, sent what cannot be read, or could not prove that it knows the password."""
