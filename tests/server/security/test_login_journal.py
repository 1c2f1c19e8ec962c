"""The log of failed logins: whole sentences, and a bound on how many."""

from headrace.server.security.login_journal import MOST_LINES, PERIOD_SECONDS, LoginJournal
from headrace.testing.clock import MovableClock


def test_many_failures_do_not_fill_the_log(caplog):
    clock = MovableClock()
    journal = LoginJournal(clock)
    for number in range(MOST_LINES + 30):
        journal.failed("10.0.0.1", "SASL", "PLAIN", f"user-{number}", "the password is wrong", "")
    assert len(caplog.records) == MOST_LINES
    clock.advance(PERIOD_SECONDS + 1)
    journal.failed("10.0.0.1", "SASL", "PLAIN", "late", "the password is wrong", "")
    assert [record.message for record in caplog.records[MOST_LINES:]] == [
        "30 further failed logins were not logged one by one.",
        "Refused a login of 'late' from 10.0.0.1 on listener SASL with PLAIN: the password is wrong.",
    ]


def test_what_a_client_says_cannot_forge_a_line(caplog):
    LoginJournal(MovableClock()).failed(
        "10.0.0.1", "SASL", "PLAIN\nx", "eve\n2026 all is well" * 50, "no", "do it"
    )
    (record,) = caplog.records
    assert "\n" not in record.message
    assert len(record.message) < 300
