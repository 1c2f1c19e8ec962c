"""The CSV files that offsets are reset from and exported to."""

from __future__ import annotations

import pytest

from headrace.cli.failure import Failure
from headrace.cli.parsing import offsets_file


@pytest.mark.parametrize("groups", [["a"], ["a", "b"]])
def test_what_is_exported_can_be_read(tmp_path, groups):
    offsets = {group: {("t", 0): 7, ("t", 1): 0} for group in groups}
    file = tmp_path / "plan.csv"
    file.write_text(offsets_file.text(offsets))
    assert offsets_file.read(file, groups) == offsets


def test_lines_of_other_groups_and_empty_ones_are_skipped(tmp_path):
    file = tmp_path / "plan.csv"
    file.write_text("a,t,0,7\n\nother,t,0,9\n")
    assert offsets_file.read(file, ["a"]) == {"a": {("t", 0): 7}}


@pytest.mark.parametrize("line", ["t,0", "t,zero,7", "a,t,0,7,8"])
def test_a_line_that_is_no_offset_is_named(tmp_path, line):
    file = tmp_path / "plan.csv"
    file.write_text(f"t,0,1\n{line}\n")
    with pytest.raises(Failure, match=r"Line 2 of .* is not 'topic,partition,offset'"):
        offsets_file.read(file, ["a"])
