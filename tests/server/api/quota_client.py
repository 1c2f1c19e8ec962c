"""Setting quotas over the wire, with a client that has none itself."""

from headrace.testing.wire import WireClient, frame
from headrace.wire.messages import alter_client_quotas as acq


class Client(WireClient):
    """A connection with a client id of its own."""

    def __init__(self, bootstrap, client_id):
        super().__init__(bootstrap, timeout=60)
        self.client_id = client_id

    def send(self, request, version):
        number = next(self._numbers)
        self.socket.sendall(frame(request, version, number, self.client_id))
        return number

    def waits(self):
        """Whether the broker has nothing to say now."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1) is None
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(60)


def set_quota(bootstrap, entity, **values):
    """Set quotas of an entity, or remove those that are None."""
    request = acq.AlterClientQuotasRequest(
        [
            acq.EntryData(
                [acq.EntityData(*part) for part in entity],
                [acq.OpData(name, value or 0.0, value is None) for name, value in values.items()],
            )
        ]
    )
    with Client(bootstrap, "operator") as operator:
        (result,) = operator.call(request, 1).entries
    assert result.error_code == 0, result.error_message
