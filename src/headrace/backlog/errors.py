"""How a step of a divert fails. Each message is a sentence for the user."""

from __future__ import annotations

from headrace.client.administration.errors import NotPossible


class NotYet(NotPossible):
    """What is in the way may pass: consumers have to stop, or to read on."""
