"""Every page of docs/ has a place in the site's navigation, and the pages are put together without a broken link."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_page_has_a_place_in_the_navigation() -> None:
    named = set(re.findall(r"^ +- ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - named == set()


def test_links_between_pages_lead_somewhere() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "docs_site.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
