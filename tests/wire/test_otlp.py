"""Metrics that clients push, read by hand: the same as what the real protobuf classes say, and never more than an OtlpError."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from headrace.wire import otlp
from headrace.wire.otlp import Distribution, OtlpError, Series, Temporality, read_metrics

texts = st.text(max_size=12)
values = st.one_of(
    texts.map(lambda text: (AnyValue(string_value=text), text)),
    st.booleans().map(lambda flag: (AnyValue(bool_value=flag), "true" if flag else "false")),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: (AnyValue(int_value=number), str(number))),
    st.floats(allow_nan=False).map(lambda number: (AnyValue(double_value=number), str(number))),
)
attributes = st.lists(st.tuples(texts, values), max_size=3)
counts = st.integers(0, 2**64 - 1)
numbers = st.floats(allow_nan=False)


def key_values(given):
    return [KeyValue(key=key, value=value) for key, (value, _) in given]


def labels(*given):
    return tuple((key, text) for each in given for key, (_, text) in each)


@st.composite
def metrics(draw, resource):
    """(a Metric, the series it holds)"""
    name, unit, form = (
        draw(texts.filter(bool)),
        draw(texts),
        draw(st.sampled_from(["gauge", "sum", "histogram"])),
    )
    temporality = Temporality.NONE if form == "gauge" else draw(st.sampled_from(list(Temporality)))
    monotonic = form == "sum" and draw(st.booleans())
    points, series = [], []
    for _ in range(draw(st.integers(0, 3))):
        given, time = draw(attributes), draw(counts)
        if form == "histogram":
            bounds = draw(st.lists(numbers, max_size=4))
            filled = draw(st.lists(counts, min_size=len(bounds) + 1, max_size=len(bounds) + 1))
            count, total = draw(counts), draw(numbers)
            point = pb.HistogramDataPoint(
                attributes=key_values(given),
                time_unix_nano=time,
                count=count,
                sum=total,
                bucket_counts=filled,
                explicit_bounds=bounds,
                min=1.0,
                max=2.0,
            )
            value = Distribution(count, total, tuple(bounds), tuple(filled))
        else:
            value = draw(st.one_of(numbers, st.integers(-(2**63), 2**63 - 1)))
            point = pb.NumberDataPoint(attributes=key_values(given), time_unix_nano=time, flags=1)
            setattr(point, "as_int" if isinstance(value, int) else "as_double", value)
        points.append(point)
        series.append(Series(name, labels(resource, given), value, monotonic, temporality, unit, time))
    metric = pb.Metric(name=name, unit=unit, description=draw(texts))
    holder = getattr(metric, form)
    holder.SetInParent()
    holder.data_points.extend(points)
    if form != "gauge":
        holder.aggregation_temporality = temporality
    if form == "sum":
        holder.is_monotonic = monotonic
    return metric, series


@st.composite
def pushes(draw):
    """(MetricsData, its series)"""
    data, series = pb.MetricsData(), []
    for _ in range(draw(st.integers(0, 2))):
        resource = draw(attributes)
        drawn = draw(st.lists(metrics(resource), max_size=3))
        data.resource_metrics.append(
            pb.ResourceMetrics(
                resource=Resource(attributes=key_values(resource)),
                scope_metrics=[
                    pb.ScopeMetrics(
                        scope=InstrumentationScope(name="s"), metrics=[metric for metric, _ in drawn]
                    )
                ],
                schema_url="u",
            )
        )
        series += [each for _, inner in drawn for each in inner]
    return data, series


def read(data):
    return list(read_metrics(data))


@settings(max_examples=150, deadline=None)
@given(pushes())
def test_what_the_protobuf_classes_write_is_read_in_full(push):
    data, series = push
    assert read(data.SerializeToString()) == series


@settings(max_examples=150, deadline=None)
@given(pushes(), st.data())
def test_damaged_bytes_are_refused_or_read_as_something_else_and_raise_nothing_more(push, data):
    whole = bytearray(push[0].SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        read(cut)
    except OtlpError:
        pass


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_refused_or_read_and_raise_nothing_more(noise):
    try:
        read(noise)
    except OtlpError:
        pass


def test_kinds_of_metrics_that_no_client_pushes_are_skipped():
    metric = pb.Metric(name="m", summary=pb.Summary(data_points=[pb.SummaryDataPoint(count=1)]))
    scope = pb.ScopeMetrics(metrics=[metric])
    data = pb.MetricsData(resource_metrics=[pb.ResourceMetrics(scope_metrics=[scope])])
    assert read(data.SerializeToString()) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\x05\x12", "goes beyond the end"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x00", "without a number"),
        (b"\xff" * 11, "more than ten bytes"),
        (b"\x0a\x06\x12\x04\x12\x02\x0a\x00", "without a name"),
        (b"\x0a\x07\x12\x05\x12\x03\x0a\x01\xff", "not UTF-8"),
    ],
)
def test_what_is_wrong_is_named(data, reason):
    with pytest.raises(OtlpError, match=reason):
        read(data)


def test_a_push_of_countless_empty_fields_costs_a_bounded_amount_of_work(monkeypatch):
    monkeypatch.setattr(otlp, "MOST_FIELDS", 100)
    with pytest.raises(OtlpError, match="more than 100 fields"):
        read(b"\x0a\x00" * 101)


def test_labels_of_a_resource_count_for_every_series_that_carries_them(monkeypatch):
    monkeypatch.setattr(otlp, "MOST_FIELDS", 5_000)
    labels = [KeyValue(key="k", value=AnyValue(string_value="v"))] * 100
    gauge = pb.Gauge(data_points=[pb.NumberDataPoint(as_int=1)] * 100)
    push = pb.MetricsData(
        resource_metrics=[
            pb.ResourceMetrics(
                resource=Resource(attributes=labels),
                scope_metrics=[pb.ScopeMetrics(metrics=[pb.Metric(name="m", gauge=gauge)])],
            )
        ]
    )
    with pytest.raises(OtlpError, match="more than 5000 fields"):
        read(push.SerializeToString())
