"""What the site looks like now: views per minute, and a profile of each user."""

from functools import reduce

from pyspark.sql import functions as F

from headrace import pipelines as hp

views = hp.topic("activity.page_view", "user STRING, page STRING, at TIMESTAMP")
searches = hp.topic("activity.search", "user STRING, query STRING, at TIMESTAMP")
purchases = hp.topic("activity.purchase", "user STRING, amount DOUBLE, at TIMESTAMP")


@hp.topic("views.per_minute", key="page")
def views_per_minute():
    """A minute is told once, when no view of it can come any more: two minutes later."""
    return (
        views.stream()
        .withWatermark("at", "2 minutes")
        .groupBy(F.window("at", "1 minute"), "page")
        .count()
        .select("page", F.col("window.start").alias("minute"), "count")
    )


@hp.table("views.now", key="page")
def views_now():
    """The same as a table that is always up to date: the latest row of a page is its number of views."""
    return views.stream().groupBy("page").count()


@hp.table("profiles", key="user")
def profiles():
    """One row per user, from three topics."""
    kinds = {"views": views, "searches": searches, "purchases": purchases}
    parts = [
        topic.stream().select("user", "at", *(F.lit(int(kind == name)).alias(name) for name in kinds))
        for kind, topic in kinds.items()
    ]
    everything = reduce(lambda one, other: one.unionByName(other), parts)
    return everything.groupBy("user").agg(
        *(F.sum(name).alias(name) for name in kinds), F.max("at").alias("last_seen")
    )
