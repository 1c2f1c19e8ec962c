"""Flows that do less under load: what a rule drops is written down and comes back, and a flow can be switched off."""

import time

from headrace.client.admin import Admin
from headrace.client.degrade import notes
from headrace.client.degrade.notes import Notes
from headrace.client.degrade.orders import Orders
from headrace.client.degrade.replay import Outcome, Replay
from headrace.client.degrade.states import Order
from headrace.pipelines.runner import Runner

PLAIN = """
    from headrace import pipelines as hp

    clicks = hp.topic("clicks", "n BIGINT")

    @hp.topic("clicks.counted", key="n")
    def counted():
        return clicks.stream(record=True).selectExpr("n", "_record.topic AS topic", "_record.offset AS offset")
"""
DEGRADED = PLAIN.replace(
    "stream(record=True)",
    'stream(record=True, degrade=[DropWhere(name="odd", predicate=lambda each: each.value["n"] % 2)])',
).replace("from headrace import", "from headrace.client import DropWhere\n    from headrace import")
GROUP = "degraded.counted"


def test_a_flow_drops_by_rule_is_switched_off_and_on_and_takes_up_what_is_replayed(
    write_project, prepared, run_once, cluster
):
    config = {"bootstrap.servers": cluster.bootstrap}
    cluster.create("clicks")
    cluster.send("clicks", {"n": 0}, {"n": 1})
    run_once(write_project({"flows.py": PLAIN}, "degraded"))
    assert [row["n"] for row in cluster.rows("clicks.counted")] == [0, 1]

    # It goes on from the same checkpoint, with rules now.
    cluster.send("clicks", *({"n": number} for number in range(2, 10)))
    root = write_project({"flows.py": DEGRADED}, "degraded")
    status = run_once(root)["counted"]
    assert [row["n"] for row in cluster.rows("clicks.counted")] == [0, 1, 2, 4, 6, 8]
    assert (status.rows_in, status.dropped) == (8, 4)
    with Admin(cluster.bootstrap) as admin:
        account = Notes(config, GROUP).read(admin)
        assert {(drop.topic, drop.rule, str(spans)) for drop, spans in account.left.items()} == {
            ("clicks", "odd", "3,5,7,9")
        }
    assert Replay(config, GROUP).run(lambda count: None) == Outcome(4, 0)

    # Switched off by a command, it reads nothing; switched on again, it takes up what was replayed, as it was.
    pipeline = prepared(root)
    runner = Runner(pipeline.steps, pipeline.run, pipeline.checkpoints, pipeline.tables, interval=0.2)
    (status,) = [each for each in runner.statuses if each.flow == "counted"]

    def turn_until(condition):
        deadline = time.monotonic() + 600
        while not condition():
            assert runner.turn()
            assert time.monotonic() < deadline, [each.as_json() for each in runner.statuses]
            time.sleep(0.05)

    try:
        with Orders(cluster.bootstrap) as orders:
            assert orders.confirmed(orders.give(GROUP, ["group"], Order.ON), 60) == (1, 1)
            turn_until(lambda: status.state == "switched off")
            cluster.send("clicks", {"n": 10})
            before = len(cluster.rows("clicks.counted"))
            orders.give(GROUP, ["odd"], Order.OFF)
            assert orders.confirmed(orders.give(GROUP, ["group"], Order.AUTO), 60) == (1, 1)
        cluster.send("clicks", {"n": 11})
        turn_until(lambda: status.state == "running" and len(cluster.rows("clicks.counted")) == 12)
    finally:
        runner.stop()
    assert before == 6
    rows = cluster.rows("clicks.counted")
    assert sorted(row["n"] for row in rows) == list(range(12))
    assert all((row["topic"], row["offset"]) == ("clicks", row["n"]) for row in rows)
    with Admin(cluster.bootstrap) as admin:
        account = Notes(config, GROUP).read(admin)
    assert (account.total(notes.DROPPED), account.total(notes.REPLAYED), account.remaining) == (4, 4, 0)
