"""When a query that failed is started again, and when it is given up."""

from headrace.streaming.restarts import Restarts

AWAY = "BrokerUnavailable: the broker at 127.0.0.1:9092 cannot be reached"
BUSY = "Python worker failed to connect back."


def test_a_failure_that_may_pass_is_followed_by_a_start_and_a_mistake_is_not():
    restarts = Restarts(300)
    assert restarts.is_due
    assert restarts.after(AWAY) > 0
    assert not restarts.is_due
    assert restarts.after("ArithmeticException: Division by zero.") is None


def test_without_patience_nothing_is_tried_again_but_a_busy_machine_is_waited_for():
    assert Restarts(0).after(AWAY) is None
    assert Restarts(0).after(BUSY) is not None


def test_the_pauses_grow_until_something_gets_done():
    restarts = Restarts(300)
    pauses = [restarts.after(AWAY) for _ in range(6)]
    assert pauses[-1] > pauses[0] * 5
    restarts.got_something_done()
    assert restarts.after(AWAY) <= 1.5


def test_what_may_pass_is_for_the_caller_to_say():
    restarts = Restarts(300, lambda failure: "Unavailable" in failure)
    assert restarts.after("Unavailable: the database does not answer") is not None
    assert restarts.after("Connection refused") is None
