"""The SQL files of a project: Spark's parser says what each statement defines, and this turns it into elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import MaterializedView, Output, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import DataFrame, SparkSession

from headrace.pipelines.errors import Problem, SourceLine
from headrace.pipelines.spark_errors import sentence

Elements = tuple[list[Output], list[Flow], list[Problem]]


def elements(spark: SparkSession, text: str, file: str) -> Elements:
    outputs: list[Output] = []
    flows: list[Flow] = []
    problems: list[Problem] = []
    for line, statement in statements(text):
        location = SourceCodeLocation(file, line)
        try:
            output, flow = _element(spark, statement, location)
        except ParseException as error:
            problems.append(Problem(sentence(error), SourceLine(file, line + line_of(error) - 1)))
            continue
        if output is None and flow is None:
            problems.append(
                Problem(
                    "This statement defines nothing: a pipeline's SQL has CREATE STREAMING TABLE, MATERIALIZED VIEW, "
                    "TEMPORARY VIEW and FLOW.",
                    SourceLine(file, line),
                )
            )
        outputs += [output] if output is not None else []
        flows += [flow] if flow is not None else []
    return outputs, flows, problems


def statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line it begins on; semicolons in quotes and comments do not end one."""
    start, position = 0, 0
    while position <= len(text):
        end = position == len(text)
        if end or text[position] == ";":
            piece = text[start:position]
            bare = _without_leading_comments(piece)
            if bare.strip():
                offset = start + len(piece) - len(bare) + len(bare) - len(bare.lstrip())
                yield text.count("\n", 0, offset) + 1, text[offset:position].rstrip()
            start = position + 1
            position += 1
        else:
            position = _after_token(text, position)


def line_of(error: BaseException) -> int:
    """The line within its statement that Spark's parser points to."""
    import re

    found = re.search(r"\bline (\d+),? pos \d+", str(error))
    return int(found.group(1)) if found else 1


def _after_token(text: str, position: int) -> int:
    if text.startswith("--", position):
        end = text.find("\n", position)
        return len(text) if end < 0 else end
    if text.startswith("/*", position):
        end = text.find("*/", position + 2)
        return len(text) if end < 0 else end + 2
    if (quote := text[position]) in "'\"`":
        end = position + 1
        while end < len(text) and text[end] != quote:
            end += 2 if text[end] == "\\" and quote != "`" else 1
        return min(end + 1, len(text))
    return position + 1


def _without_leading_comments(piece: str) -> str:
    while (bare := piece.lstrip()).startswith(("--", "/*")):
        piece = bare[_after_token(bare, 0) :]
    return piece


def _element(
    spark: SparkSession, statement: str, location: SourceCodeLocation
) -> tuple[Output | None, Flow | None]:
    plan: Any = spark._jsparkSession.sessionState().sqlParser().parsePlan(statement)
    kind = plan.getClass().getSimpleName()
    if kind == "CreateFlowCommand":
        insert = plan.flowOperation()
        target = insert.table().multipartIdentifier().mkString(".")
        query = _text_of(insert.query())
        return None, _flow(spark, plan.name().nameParts().mkString("."), target, query, statement, location)
    if kind == "CreateViewCommand" and "Temp" in plan.viewType().toString():
        name = plan.name().table()
        view = TemporaryView(name, None, location)
        return view, _flow(spark, name, name, plan.originalText().get(), statement, location)
    kinds: dict[str, tuple[type[StreamingTable | MaterializedView], bool]] = {
        "CreateStreamingTable": (StreamingTable, False),
        "CreateStreamingTableAsSelect": (StreamingTable, True),
        "CreateMaterializedViewAsSelect": (MaterializedView, True),
    }
    if kind not in kinds:
        return None, None
    made, has_query = kinds[kind]
    name = plan.name().nameParts().mkString(".")
    spec = plan.tableSpec()
    provider = spec.provider()
    table = made(
        name,
        None,
        location,
        table_properties={},
        partition_cols=[_column(each) for each in _each(plan.partitioning())],
        cluster_by=None,
        schema=", ".join(f"`{each.name()}` {each.dataType().sql()}" for each in _each(plan.columns()))
        or None,
        format=provider.get() if provider.isDefined() else None,
    )
    return table, _flow(spark, name, name, plan.originalText(), statement, location) if has_query else None


def _flow(
    spark: SparkSession, name: str, target: str, query: str, statement: str, location: SourceCodeLocation
) -> Flow:
    """A flow of a query, whose errors are reported with their line in the file."""
    assert location.line_number is not None
    first = location.line_number + statement.count("\n", 0, statement.rfind(query))

    def ask() -> DataFrame:
        try:
            return spark.sql(query)
        except AnalysisException as error:
            error.add_note(str(SourceLine(location.filename, first + line_of(error) - 1)))
            raise

    return Flow(name, target, {}, location, ask)


def _text_of(plan: Any) -> str:
    origin = plan.origin()
    text: str = origin.sqlText().get()
    return text[origin.startIndex().get() : origin.stopIndex().get() + 1]


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _column(transform: Any) -> str:
    return str(transform.references()[0].toString())
