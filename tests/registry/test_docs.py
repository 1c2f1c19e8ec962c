"""docs/schema-registry.md says what the code does."""

from pathlib import Path

from headrace.registry.settings import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "schema-registry.md"


def test_every_setting_stands_in_the_page_with_its_default() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for name, (default, meaning) in SETTINGS.items():
        shown = f"`{default}`" if default else ""
        assert f"| `{name}` | {shown} | {meaning} |" in rows
