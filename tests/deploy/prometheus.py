"""A real Prometheus with the shipped configuration and rules, in a hurry: what takes minutes takes seconds."""

import json
import re
import socket
import urllib.parse
import urllib.request
from pathlib import Path

from headrace.testing.leash import let_go, start_on_leash

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE = 180


def hurried(rules):
    """The same rules for a test: what waits or looks back for minutes does so for seconds, and bounds that only load
    would reach are within reach."""
    text = re.sub(r"^(\s+for:) \S+$", r"\1 1s", rules.read_text(), flags=re.MULTILINE)
    text = text.replace("[15m]", "[1m]")  # Three starts of a broker take their time.
    text = re.sub(r"\[(?!1m)\d+[mh]\]", "[8s]", text)
    return text.replace("> 1000", "> 10").replace("avgidle_percent < 0.1", "avgidle_percent < 0.8")


class Prometheus:
    def __init__(self, folder, targets):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._address = f"127.0.0.1:{found.getsockname()[1]}"
        for each in ("headrace-recording.yml", "headrace-alerts.yml"):
            (folder / each).write_text(hurried(DEPLOY / "prometheus" / each))
        shipped = (DEPLOY / "prometheus/prometheus.yml").read_text().replace("15s", "1s")
        config = re.sub(r"targets: \[.*\]", f"targets: {json.dumps(targets)}", shipped)
        (folder / "prometheus.yml").write_text(config)
        self._log = (folder / "prometheus.log").open("w")
        command = [
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
        ]
        self._process = start_on_leash(
            [*command, f"--web.listen-address={self._address}"], stdout=self._log, stderr=self._log
        )

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self._address}/api/v1/{path}?{query}", timeout=60) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def firing(self, **labels):
        """The names of the alerts that fire with these labels, among others."""
        return {
            each["labels"]["alertname"]
            for each in self.ask("alerts")["alerts"]
            if each["state"] == "firing" and labels.items() <= each["labels"].items()
        }

    def answers(self):
        try:
            return self.query("up")
        except OSError:
            return False

    def stop(self):
        self._process.terminate()
        self._process.wait(60)
        let_go(self._process)
        self._log.close()
