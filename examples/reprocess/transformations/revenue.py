"""Revenue by country. It has a mistake: yen have no cents."""

from pyspark.sql import functions as F

from headrace import pipelines as hp

payments = hp.topic("payments", "id BIGINT, country STRING, currency STRING, minor BIGINT")

MINOR_UNITS = F.lit(100)


@hp.table("revenue", key="country")
def revenue():
    return payments.stream().groupBy("country").agg(F.sum(F.col("minor") / MINOR_UNITS).alias("amount"))
