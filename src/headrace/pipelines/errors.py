"""What is wrong with a pipeline, in one sentence with cause and remedy, and where in the user's files."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.streaming.errors import StreamingError


class PipelineError(StreamingError):
    """The base of all errors of headrace.pipelines; the message is the sentence."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's project."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to fix before the pipeline can run."""

    sentence: str
    place: SourceLine | None = None

    def __str__(self) -> str:
        return self.sentence if self.place is None else f"{self.place}: {self.sentence}"


class ProjectBroken(PipelineError):
    """The project cannot run; ``problems`` says why, one line each."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class BadArgument(PipelineError, ValueError):
    """A run was asked for something that makes no sense for this project."""
