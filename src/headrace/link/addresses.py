"""Addresses as people write them."""


def join_address(host: str, port: int) -> str:
    """host:port, with IPv6 hosts in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(address: str) -> tuple[str, int]:
    """Host, without the brackets of IPv6, and port of HOST:PORT; the host may be missing. ValueError for anything else."""
    host, colon, port = address.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"'{address}' is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
