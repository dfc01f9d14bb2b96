"""Spans of requests, as an exporter gets them."""

from collections.abc import Mapping, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from radixgate.errors import ConfigError
from radixgate.gateway import observers
from radixgate.gateway.observe.tracing import Tracing
from radixgate.gateway.settings.observe_config import ObserveConfig
from scripted_worker import Reset, ScriptedWorker, events, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from told_gateway import told_gateway

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-01"
UNSAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-00"


async def spans_of(
    *headers: str, breaks: bool = False, ratio: float = 1.0
) -> tuple[Sequence[ReadableSpan], Mapping[str, str]]:
    """Of one streamed chat over two workers; and the trace's headers at the one that answered."""
    exporter = InMemorySpanExporter()
    tracing = Tracing(exporter, ratio, epoch_s=1e9)
    async with (
        ScriptedWorker() as one,
        ScriptedWorker() as two,
        told_gateway([one, two], tellers=[tracing], opening=tracing) as small,
    ):
        for worker in (one, two):
            worker.script = lambda request: [*sse_head(), *events("a"), *sse_end(usage=(7, 1))]
        if breaks:
            one.script = lambda request: [Reset()]
            while len(one.requests) == 0:
                exporter.clear()
                await small.post(CHAT, chat_body(stream=True), *headers)
        else:
            await small.post(CHAT, chat_body(stream=True), *headers)
        tracing.close()
        told = (two if two.requests else one).requests[-1].headers
    carried = {name: value for name, value in told if name in ("traceparent", "tracestate")}
    return exporter.get_finished_spans(), carried


def sampled(carried: Mapping[str, str]) -> bool:
    return bool(int(carried["traceparent"][-2:], 16) & 1)


def by_name(spans: Sequence[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def ids(span: ReadableSpan) -> tuple[str, str | None]:
    """Its trace, and its parent."""
    assert span.context is not None
    parent = None if span.parent is None else f"{span.parent.span_id:016x}"
    return f"{span.context.trace_id:032x}", parent


async def test_a_request_has_a_span_and_each_stage_one_below_it() -> None:
    spans, _ = await spans_of()
    named = by_name(spans)
    assert named.keys() == {f"POST {CHAT}", "queue", "choose", "first token", "stream"}
    whole = named[f"POST {CHAT}"]
    assert whole.attributes is not None
    assert whole.attributes["http.response.status_code"] == 200
    assert whole.attributes["radixgate.outcome"] == "ok"
    assert whole.attributes["gen_ai.request.model"] == "toy"
    assert whole.attributes["gen_ai.usage.input_tokens"] == 7
    assert whole.context is not None
    for name in ("queue", "choose", "first token", "stream"):
        assert ids(named[name]) == (ids(whole)[0], f"{whole.context.span_id:016x}")
    choose = named["choose"]
    assert choose.attributes is not None
    assert choose.attributes["radixgate.reason"] == "rotation"
    order = [named[name].end_time or 0 for name in ("queue", "choose", "first token", "stream")]
    assert order == sorted(order)
    assert (whole.start_time or 0) <= (named["queue"].start_time or 0)
    assert order[-1] == whole.end_time


async def test_the_caller_s_trace_goes_on_to_the_worker() -> None:
    spans, carried = await spans_of(SAMPLED, "tracestate: vendor=1")
    whole = by_name(spans)[f"POST {CHAT}"]
    assert ids(whole) == (TRACE, PARENT)
    assert whole.context is not None
    assert carried["traceparent"] == f"00-{TRACE}-{whole.context.span_id:016x}-01"
    assert carried["tracestate"] == "vendor=1"


async def test_what_the_caller_does_not_sample_is_not_sent_but_passed_on() -> None:
    spans, carried = await spans_of(UNSAMPLED)
    assert spans == ()
    assert carried["traceparent"].startswith(f"00-{TRACE}-")
    assert not sampled(carried)


async def test_of_callers_who_have_not_decided_a_share_is_sampled() -> None:
    spans, carried = await spans_of(ratio=0.0)
    assert spans == ()
    assert not sampled(carried)


async def test_an_attempt_that_failed_has_a_span_of_its_own() -> None:
    spans, _ = await spans_of(breaks=True)
    names = [span.name for span in spans]
    assert names.count("choose") == 2
    assert names.count("failed attempt") == 1
    assert names.count("first token") == 1


async def test_without_it_the_header_passes_as_it_came() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as small:
        await small.post(CHAT, chat_body(), SAMPLED)
        assert worker.requests[-1].header("traceparent") == SAMPLED.partition(": ")[2]


def test_without_the_extra_it_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "radixgate.gateway.observe.tracing", None)
    config = ObserveConfig(otlp_traces_endpoint="http://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"install radixgate\[otel\]"):
        observers.check(config)
