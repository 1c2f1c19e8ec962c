"""From lines to numbers: what each service logs, and an alert for every service that fails too often."""

from pyspark.sql import functions as F

from headrace import pipelines as hp

LINE = r"^(\S+) (\w+) (\S+) (.*)$"
lines = hp.topic("logs", format="string")


@hp.topic(
    "logs.parsed", key="service", expect=[hp.expect("a line as services write it", "service IS NOT NULL")]
)
def parsed():
    at, level, service, text = (F.nullif(F.regexp_extract("value", LINE, n), F.lit("")) for n in range(1, 5))
    return lines.stream().select(
        at.cast("timestamp").alias("at"), level.alias("level"), service.alias("service"), text.alias("text")
    )


@hp.table("logs.errors", key=["service", "minute"])
def errors():
    """How often each service failed in each minute; a table, because a late line raises an old number."""
    fields = F.split("value", " ", 4)
    return (
        lines.stream()
        .where(fields[1] == "ERROR")
        .groupBy(
            fields[2].alias("service"), F.date_trunc("minute", fields[0].cast("timestamp")).alias("minute")
        )
        .count()
    )
