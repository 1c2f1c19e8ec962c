"""A TLS client that is gone while the broker still works on what it sent."""

import contextlib
import socket
import ssl
import struct

from tests.certificates import Certificates

LINGER_ZERO = struct.pack("ii", 1, 0)


def api_versions():
    body = struct.pack(">hhih", 18, 0, 1, 1) + b"x"
    return struct.pack(">i", len(body)) + body


def context(certificates):
    made = ssl.create_default_context(cafile=str(certificates.ca))
    made.check_hostname = False
    return made


def send_much_and_break(tls, port):
    """All in one go, so that it is there when the connection breaks."""
    arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    stream = tls.wrap_bio(arrived, leaving, server_hostname="localhost")
    with socket.create_connection(("localhost", port)) as raw:
        while True:
            try:
                stream.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(leaving.read())
                arrived.write(raw.recv(65536))
        stream.write(api_versions())  # its answer shows that the broker has the connection
        raw.sendall(leaving.read())
        raw.recv(1)
        stream.write(api_versions() * 5000)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
        with contextlib.suppress(OSError):
            raw.sendall(leaving.read())


def test_the_broker_serves_on_when_a_client_breaks_off_in_the_middle_of_its_requests(make_broker, tmp_path):
    certificates = Certificates(tmp_path / "certificates")
    broker = make_broker(certificates.listener())
    tls = context(certificates)
    for _ in range(5):
        send_much_and_break(tls, broker.port)
        with socket.create_connection(("localhost", broker.port), timeout=60) as raw:
            asking = tls.wrap_socket(raw, server_hostname="localhost")
            asking.sendall(api_versions())
            assert asking.recv(4)
