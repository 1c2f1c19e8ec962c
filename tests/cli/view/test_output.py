from __future__ import annotations

from headrace.cli.view.output import columns


def test_columns_align_with_numbers_to_the_right_and_nothing_as_a_dash() -> None:
    assert columns(("NAME", "COUNT"), [("orders", 12), ("a", None)]) == [
        "NAME    COUNT",
        "orders     12",
        "a           -",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert columns(("NAME", "COUNT"), []) == ["NAME  COUNT"]
