import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_setting_of_kafka_is_in_the_table_with_what_it_does_here() -> None:
    table = tool("generate_settings_table")
    page = (ROOT / "docs/kafka-settings.md").read_text()
    assert page == table.render(), "run tools/generate_settings_table.py"


def test_the_page_of_settings_says_what_the_definitions_say() -> None:
    generator = tool("generate_configuration")
    page = (ROOT / "docs/configuration.md").read_text()
    assert page == generator.render(page), "run tools/generate_configuration.py"
