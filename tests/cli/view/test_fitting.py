"""Tables that fit the terminal: one line where there is room, two where there is not, never longer than the width."""

import pytest

from headrace.cli.view.fitting import fit
from headrace.cli.view.pipelines import COLUMNS
from headrace.pipelines.progress import FlowStatus

FLOWS = [
    FlowStatus(
        "views_per_minute_and_page",
        "views.per_minute",
        "running",
        rows_in_per_second=12_345.6,
        rows_out_per_second=0.4,
        lag_rows=1_234_567,
        lag_seconds=75,
        batch_seconds=0.456,
        state_rows=12_345,
        state_bytes=4_567_890,
        watermark="2026-01-01T10:05:00.000Z",
    ).as_json(),
    FlowStatus("large_orders", "orders.large", lag_rows=0, lag_seconds=0.0, dead_letters=17).as_json(),
]


def test_one_line_for_each_flow_where_there_is_room():
    assert fit(COLUMNS, FLOWS).lines == [
        "FLOW                       TO                STATUS      IN/s  OUT/s        LAG      BEHIND   BATCH             STATE         WATERMARK  DEAD",
        "views_per_minute_and_page  views.per_minute  running   12,346    0.4  1,234,567  1 min 15 s  0.46 s  12,345 (4.4 MiB)  2026-01-01 10:05     0",
        "large_orders               orders.large      starting       0      0          0         0 s       -                 -                 -    17",
    ]


def test_what_does_not_fit_moves_to_a_second_line():
    assert fit(COLUMNS, FLOWS, 80).lines == [
        "FLOW                STATUS      IN/s  OUT/s        LAG      BEHIND   BATCH  DEAD",
        "views_per_minute_…  running   12,346    0.4  1,234,567  1 min 15 s  0.46 s     0",
        "  → views.per_minute · state 12,345 rows (4.4 MiB) · watermark 2026-01-01 10:05",
        "large_orders        starting       0      0          0         0 s       -    17",
        "  → orders.large",
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 132, 200])
def test_no_line_is_longer_than_the_width(width):
    assert max(map(len, fit(COLUMNS, FLOWS, width).lines)) <= width
