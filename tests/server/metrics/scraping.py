"""Scraping a broker as Prometheus does, with Prometheus' own parsers."""

import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

METRICS = {"headrace.metrics.listener": "127.0.0.1:0"}


def url(broker):
    host, port = broker.node.metrics_address
    return f"http://{host}:{port}"


def get(broker, path, **headers):
    """(status, content type, body), whatever the status."""
    request = urllib.request.Request(url(broker) + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


class Samples:
    """One scrape: samples by name and labels."""

    def __init__(self, broker, path="/metrics"):
        status, _, text = get(broker, path)
        assert status == 200, text
        self.families = list(text_string_to_metric_families(text))
        self._all = [sample for family in self.families for sample in family.samples]

    def of(self, name, **labels):
        """The value of every sample of that name that has these labels, among others."""
        return [
            sample.value
            for sample in self._all
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def one(self, name, **labels):
        """The value of the sample with exactly these labels; None when there is none."""
        found = [each.value for each in self._all if each.name == name and each.labels == labels]
        assert len(found) <= 1, f"{name}{labels} stands there twice"
        return found[0] if found else None

    @property
    def names(self):
        return {sample.name for sample in self._all}

    @property
    def keys(self):
        return [(sample.name, tuple(sorted(sample.labels.items()))) for sample in self._all]
