"""Bytes as people read them."""

from __future__ import annotations


def show_bytes(count: float) -> str:
    """512 B, 3.4 GiB"""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if units[0] == "B" else f"{amount:.1f} {units[0]}"
