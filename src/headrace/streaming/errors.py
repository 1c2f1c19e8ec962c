"""What can go wrong with anything that runs on Spark; the message is one sentence with cause and remedy."""

from __future__ import annotations


class StreamingError(Exception):
    """The base of the errors of pipelines and connectors."""


class SparkDidNotStart(StreamingError):
    """There is no session, for a reason that lies outside the pipeline or connector."""
