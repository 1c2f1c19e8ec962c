"""A pipeline project: a directory with Spark's own spark-pipeline.yml and the files it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.pipelines.cli import PipelineSpec

SPEC_FILES = ("spark-pipeline.yml", "spark-pipeline.yaml")


@dataclass(frozen=True, slots=True)
class Project:
    root: Path
    spec: PipelineSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def storage(self) -> str:
        """Where checkpoints and tables are kept, as Spark wants it: absolute."""
        given = self.spec.storage
        if "://" in given or given.startswith(("file:", "/")):
            return given
        return (self.root / given).as_uri()

    def files(self) -> Iterator[Path]:
        """The files of the project in a stable order, each once."""
        seen: set[Path] = set()
        for library in self.spec.libraries:
            for path in sorted(self.root.glob(library.include)):
                if path.is_file() and "__pycache__" not in path.parts and path not in seen:
                    seen.add(path)
                    yield path


def find_spec(directory: Path) -> Path | None:
    """The spec of the project in this very directory."""
    found = [directory / name for name in SPEC_FILES if (directory / name).is_file()]
    return found[0] if found else None


def projects_in(directory: Path) -> list[Path]:
    """The directories of the projects in it and below it."""
    places = [directory, *(path for path in sorted(directory.glob("*/**")) if path.is_dir())]
    return [path for path in places if ".venv" not in path.parts and find_spec(path) is not None]


def locate(place: Path) -> Path:
    """The spec a user means by a directory inside a project, or by the spec file itself."""
    place = place.resolve()
    if place.is_file():
        return place
    if not place.is_dir():
        raise PipelineError(f"There is no directory '{place}'; make a project with 'headrace pipeline new'.")
    for directory in (place, *place.parents):
        if spec := find_spec(directory):
            return spec
    raise PipelineError(
        f"There is no {SPEC_FILES[0]} in '{place}' or above it; make a project with 'headrace pipeline new NAME'."
    )


def load(spec: Path) -> Project:
    import yaml
    from pyspark.errors import PySparkException
    from pyspark.pipelines.cli import load_pipeline_spec

    try:
        return Project(spec.parent, load_pipeline_spec(spec))
    except PySparkException as error:
        raise PipelineError(f"{spec.name} is not a pipeline spec: {_plain(error)}") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise PipelineError(f"{spec.name} is not YAML: {reason}.") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise PipelineError(
            f"{spec.name} is not a pipeline spec: it needs name, storage and libraries "
            "(each '- glob: {include: transformations/**}')."
        ) from error


def _plain(error: BaseException) -> str:
    from headrace.pipelines.spark_errors import sentence

    return sentence(error)
