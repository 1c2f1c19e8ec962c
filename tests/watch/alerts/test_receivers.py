"""What receivers get, from the real things: an HTTP server, Debian's Alertmanager, commands, a topic."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.client import Admin, TopicPartition
from headrace.client.scan import scan
from headrace.watch.alerts.declared import (
    CommandReceiver,
    LogReceiver,
    TopicReceiver,
    WebhookReceiver,
)
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import NotDelivered
from headrace.watch.alerts.receivers.command import Command
from headrace.watch.alerts.receivers.log import Log
from headrace.watch.alerts.receivers.topic import Topic
from headrace.watch.alerts.receivers.webhook import Webhook
from headrace.watch.alerts.states import Phase
from tests.waiting import until
from tests.watch.alerts.conftest import Inbox


def notice(phase: Phase = Phase.FIRING, at: float | None = None) -> Notice:
    now = time.time() if at is None else at
    return Notice(
        key="stopped/group=billing",
        episode="stopped/group=billing@1",
        phase=phase,
        rule="stopped",
        kind="lag-state",
        severity="critical",
        labels=(("group", "billing"), ("team-name", "payments")),
        summary="group billing is stalled: 7 records unread in <orders-0>",
        value=7.0,
        since=now - 60,
        at=now,
        ended=now if phase is Phase.RESOLVED else None,
        runbook="https://example.com/runbook",
        cluster="production",
        repeat=60.0,
    )


def refusal(receiver: Webhook | Command | Topic) -> NotDelivered:
    with pytest.raises(NotDelivered) as raised:
        receiver.deliver(notice())
    return raised.value


def test_a_signed_notice_can_be_verified(inbox: Inbox) -> None:
    settings = WebhookReceiver("w", inbox.url, secret="hush", headers=(("Authorization", "Bearer abc"),))
    Webhook(settings).deliver(notice())
    [received] = inbox.received
    sent = dict(part.split("=", 1) for part in received.headers["X-Headrace-Signature"].split(","))
    expected = hmac.new(b"hush", sent["t"].encode() + b"." + received.body, hashlib.sha256).hexdigest()
    assert sent["v1"] == expected
    assert abs(time.time() - int(sent["t"])) < 90
    assert received.headers["X-Headrace-Id"] == "stopped/group=billing@1"
    assert received.headers["Authorization"] == "Bearer abc"
    document = received.document
    assert (document["version"], document["status"], document["rule"]) == (1, "firing", "stopped")
    assert document["labels"] == {"group": "billing", "team-name": "payments"}


def test_slack_gets_a_message_with_nothing_in_it_that_slack_reads_as_markup(inbox: Inbox) -> None:
    Webhook(WebhookReceiver("w", inbox.url, shape="slack")).deliver(notice(Phase.RESOLVED))
    document = inbox.received[0].document
    assert document["text"] == "[RESOLVED] stopped (production)"
    [attachment] = document["attachments"]
    assert attachment["color"] == "#2eb886"
    assert "unread in &lt;orders-0&gt;" in attachment["text"]
    assert "group=billing" in attachment["text"]


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_any_answer_but_success_is_a_refusal(inbox: Inbox, status: int) -> None:
    inbox.answers = [status]
    refused = refusal(Webhook(WebhookReceiver("w", inbox.url)))
    assert f"it answered {status}" in str(refused)
    assert not refused.may_have_arrived
    assert inbox.received == []


def test_an_answer_that_does_not_come_leaves_it_open_whether_the_notice_arrived(inbox: Inbox) -> None:
    inbox.hold.clear()
    refused = refusal(Webhook(WebhookReceiver("w", inbox.url, timeout=0.3)))
    assert "no answer within 0.3 s" in str(refused)
    assert refused.may_have_arrived


def test_a_url_never_appears_in_what_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for url in (f"http://127.0.0.1:{port}/s3cret", "http://bad host/s3cret"):
        refused = refusal(Webhook(WebhookReceiver("w", url)))
        assert "s3cret" not in str(refused)
        assert not refused.may_have_arrived


def test_a_command_gets_the_notice_on_stdin_and_in_its_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        f'cat > {out}; echo >> {out}; echo "$HEADRACE_ALERT_RULE $HEADRACE_ALERT_LABEL_TEAM_NAME" >> {out}'
    )
    Command(CommandReceiver("c", ("sh", "-c", script))).deliver(notice())
    document, variables = out.read_text().splitlines()
    assert json.loads(document)["summary"].startswith("group billing is stalled")
    assert variables == "stopped payments"


def test_a_command_that_fails_says_why() -> None:
    failed = refusal(Command(CommandReceiver("c", ("sh", "-c", "echo no line >&2; exit 7"))))
    assert str(failed) == "it ended with status 7: no line"
    missing = refusal(Command(CommandReceiver("c", ("/nowhere/pager",))))
    assert str(missing) == "it cannot be started: No such file or directory"


def test_a_command_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 600 & echo $! > {pid}; wait"
    slow = refusal(Command(CommandReceiver("c", ("sh", "-c", script), timeout=1.0)))
    assert "took longer than 1 s and was killed" in str(slow)
    if pid.exists() and pid.read_text().strip():
        stat = Path(f"/proc/{pid.read_text().strip()}/stat")
        until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z", "the end of what it started")


def test_a_topic_gets_a_record_for_each_notice(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("alerts", partitions=1)
    receiver = Topic(TopicReceiver("t", "alerts"), {"bootstrap.servers": bootstrap})
    receiver.deliver(notice())
    receiver.close()
    [record] = scan({"bootstrap.servers": bootstrap}, {TopicPartition("alerts", 0): None})
    assert record.key == b"stopped/group=billing"
    assert json.loads(record.value or b"")["status"] == "firing"


def test_a_topic_that_is_away_refuses_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    receiver = Topic(TopicReceiver("t", "alerts", timeout=1.0), {"bootstrap.servers": f"127.0.0.1:{port}"})
    assert refusal(receiver)
    receiver.close()


def test_the_log_has_a_line_for_people_or_for_programs(capfd: pytest.CaptureFixture[str]) -> None:
    Log(LogReceiver("log")).deliver(notice())
    Log(LogReceiver("log", format="json")).deliver(notice())
    people, programs = capfd.readouterr().err.splitlines()
    assert "[CRITICAL] stopped (production): group billing is stalled" in people
    assert json.loads(programs)["rule"] == "stopped"


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    binary = shutil.which("prometheus-alertmanager")
    if binary is None:
        pytest.fail(
            "prometheus-alertmanager is missing: apt-get install prometheus-alertmanager (make servers does)",
            pytrace=False,
        )
    home = tmp_path_factory.mktemp("alertmanager")
    (home / "alertmanager.yml").write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    command = [binary, f"--config.file={home}/alertmanager.yml", f"--storage.path={home}/data"]
    command += [f"--web.listen-address={address}", "--cluster.listen-address="]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://{address}"

    def ready() -> bool:
        assert process.poll() is None, (home / "log").read_text()
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    until(ready, "Alertmanager")
    yield url
    process.terminate()
    process.wait()


def alerts_of(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found


def test_alertmanager_takes_a_firing_and_its_end(alertmanager: str) -> None:
    receiver = Webhook(WebhookReceiver("am", alertmanager, shape="alertmanager"))
    receiver.deliver(notice())
    until(lambda: len(alerts_of(alertmanager)) == 1, "the alert in Alertmanager")
    [alert] = alerts_of(alertmanager)
    assert alert["labels"] == {
        "alertname": "stopped",
        "kind": "lag-state",
        "severity": "critical",
        "cluster": "production",
        "group": "billing",
        "team_name": "payments",
    }
    assert alert["annotations"]["runbook_url"] == "https://example.com/runbook"
    assert alert["status"]["state"] == "active" or alert["status"]["state"] == "unprocessed"
    receiver.deliver(notice(Phase.RESOLVED))
    until(lambda: alerts_of(alertmanager) == [], "its end in Alertmanager")
