"""What a broker knows about its past when it starts: whether it stopped cleanly, and whether the machine crashed."""

import pytest

from headrace.server.identity import StartError


def registration(broker):
    async def look(node):
        return node.cluster.registrar.registration

    return broker.run(look)


def rewrite(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(
        "\n".join(after if line.startswith(before) else line for line in text.splitlines()) + "\n"
    )


@pytest.fixture
def stopped(make_broker):
    """A broker that ran and stopped cleanly."""
    broker = make_broker()
    broker.stop()
    return broker


def test_a_new_broker_holds_nothing(make_broker):
    assert not registration(make_broker()).kept_its_data


def test_a_broker_that_stopped_well_has_its_data_whatever_happened_to_the_machine(stopped):
    rewrite(stopped.data / "meta.properties", "headrace.boot.id", "headrace.boot.id=another-run")
    found = registration(stopped.start())
    assert (found.kept_its_data, found.stopped_cleanly) == (True, True)


def test_a_killed_broker_has_its_data_when_the_machine_ran_on(stopped):
    (stopped.data / ".kafka_cleanshutdown").unlink()
    found = registration(stopped.start())
    assert (found.kept_its_data, found.stopped_cleanly) == (True, False)


def test_a_broker_whose_machine_went_down_may_have_lost_data_once(stopped):
    (stopped.data / ".kafka_cleanshutdown").unlink()
    rewrite(stopped.data / "meta.properties", "headrace.boot.id", "headrace.boot.id=another-run")
    assert not registration(stopped.start()).kept_its_data
    stopped.stop()
    (stopped.data / ".kafka_cleanshutdown").unlink()
    assert registration(stopped.start()).kept_its_data


def test_data_of_another_broker_is_refused(stopped):
    stopped.settings["node.id"] = "7"
    with pytest.raises(StartError, match="belongs to broker 1, not 7"):
        stopped.start()


def test_a_lone_broker_does_not_start_where_several_keep_their_data(make_broker, tmp_path):
    for name in ("broker-1", "broker-2"):
        make_broker(data=tmp_path / "data" / name).stop()
    with pytest.raises(StartError, match=r"\(broker-1, broker-2\); start them with --brokers 2"):
        make_broker(data=tmp_path / "data")
