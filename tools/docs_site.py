"""`make docs`: puts the pages of the site together in build/docs, from where the site is built.

README, examples and results have their place elsewhere in the repository, where links between them work as files; here links are
turned into those between pages, and one that leads nowhere ends the build. Pages of reference are made from docstrings. With
`--check` it only looks at the links.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
STAGE = ROOT / "build" / "docs"
ELSEWHERE = {
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    "examples/flash_sale/README.md": "examples-flash-sale.md",
    "bench/RESULTS.md": "results.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages outside docs/, and what they are called on the site."""
REFERENCE = ("client", "pipelines", "connectors", "services", "testing")

_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)#\s]+)(#[^)]*)?\)")


class BrokenLink(Exception):
    """A link leads to no file of the repository."""


def main() -> int:
    only_check = sys.argv[1:] == ["--check"]
    pages = {f"docs/{path.name}": path.name for path in (ROOT / "docs").glob("*.md")} | ELSEWHERE
    pictures = [*(ROOT / "docs" / "pictures").iterdir(), *(ROOT / "bench").glob("*.svg")]
    places = pages | {path.relative_to(ROOT).as_posix(): f"pictures/{path.name}" for path in pictures}
    try:
        texts = {
            page: with_links((ROOT / source).read_text(), source, places) for source, page in pages.items()
        }
    except BrokenLink as broken:
        print(broken, file=sys.stderr)
        return 1
    if only_check:
        return 0
    shutil.rmtree(STAGE, ignore_errors=True)
    (STAGE / "pictures").mkdir(parents=True)
    (STAGE / "api").mkdir()
    for path in pictures:
        shutil.copy(path, STAGE / "pictures")
    for page, text in texts.items():
        (STAGE / page).write_text(text)
    for name in REFERENCE:
        module = f"headrace.{name}"
        text = f"# {module}\n\n::: {module}\n    options:\n      show_root_heading: false\n"
        (STAGE / "api" / f"{name}.md").write_text(text)
    return 0


def with_links(markdown: str, source: str, places: dict[str, str]) -> str:
    """The text with links between files as links between pages; what is no page is named as a path."""

    def moved(link: re.Match[str]) -> str:
        target, anchor = link[2], link[3] or ""
        if "://" in target:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in places:
            return f"{link[1]}{places[path]}{anchor})"
        if not (ROOT / path).exists():
            raise BrokenLink(f"{source} has a link to {target}, which is not there.")
        return f"`{path}`"

    return _LINK.sub(moved, markdown)


if __name__ == "__main__":
    sys.exit(main())
