"""The keys and values in `__consumer_offsets`, as `headrace.wire.schema` describes messages.

Plain classes, like the messages of requests: every start of a broker makes them, and a dataclass takes a hundred times as long to make.
"""
