"""An authorizer that denies what a test tells it to, and remembers what it was asked."""

from headrace.server.security.operations import CLUSTER, Resource, ResourceKind

TOPIC, GROUP, TXN = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.TRANSACTIONAL_ID


class Rules:
    """Allows everything except what is in `denied`; remembers every question."""

    def __init__(self):
        self.denied = set()
        self.asked = []

    def authorize(self, principal, host, operation, resource):
        self.asked.append((principal, operation, resource))
        return (operation, resource) not in self.denied

    def deny(self, operation, kind, name):
        self.denied.add((operation, Resource(kind, name)))

    def deny_on_cluster(self, *operations):
        for operation in operations:
            self.denied.add((operation, CLUSTER))
