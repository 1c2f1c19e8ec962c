"""Addresses as people write them."""


def join_address(host: str, port: int) -> str:
    """host:port, with IPv6 hosts in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
