"""Tag routing: a provider with a `tag` serves only calls that ask for it; an untagged one serves the rest.

A call asks with the attachment `dubbo.tag`, else with its reference's `tag`. Where no provider has the tag, untagged
ones serve the call, unless `dubbo.force.tag=true` (attachment or reference) forbids it.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.services.invocation import Invocation
from headrace.services.invoker import Invoker
from headrace.services.url import URL, is_true

TAG = "dubbo.tag"
FORCE = "dubbo.force.tag"


def route_by_tag(invokers: Sequence[Invoker], consumer: URL, invocation: Invocation) -> Sequence[Invoker]:
    """Those of `invokers` that the call's tag allows."""
    tag = invocation.attachment(TAG) or consumer.get(TAG)
    if tag:
        tagged = [invoker for invoker in invokers if invoker.url.get(TAG) == tag]
        if tagged or is_true(invocation.attachment(FORCE) or consumer.get(FORCE)):
            return tagged
    return [invoker for invoker in invokers if not invoker.url.get(TAG)]
