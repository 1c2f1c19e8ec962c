"""The one error of the codec."""

from __future__ import annotations


class Hessian2Error(ValueError):
    """Bytes that are no Hessian 2, or a value that Hessian 2 cannot carry; the message says which and why."""
