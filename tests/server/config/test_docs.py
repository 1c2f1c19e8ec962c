import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_of_settings_says_what_the_definitions_say() -> None:
    spec = importlib.util.spec_from_file_location("generator", ROOT / "tools/generate_configuration.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    page = (ROOT / "docs/configuration.md").read_text()
    assert page == generator.render(page), "run tools/generate_configuration.py"
