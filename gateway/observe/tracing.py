"""Traces of requests for OpenTelemetry: needs the extra `otel`, and runs only where asked for."""

import threading
from collections.abc import Mapping

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from radixgate import __version__
from radixgate.gateway.heads.request_head import RequestHead
from radixgate.gateway.observe.metrics import FinalOutcome
from radixgate.gateway.observe.story import Story

_CARRIED = (b"traceparent", b"tracestate")
_EXPORT_WITHIN_S = 5
_CLOSE_WITHIN_S = 2.0
_OURS = frozenset((FinalOutcome.UPSTREAM_ERROR, FinalOutcome.REJECTED))  # what is an error of ours


def exporter_to(endpoint: str) -> SpanExporter:
    """To a collector that takes OTLP over HTTP; nothing is sent before there is a span."""
    return OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_WITHIN_S)


class Tracing:
    """A span a request, from its arrival to its end, and one for each stage of it.

    Spans wait for the exporter in a queue of 2,048 and are dropped beyond; a thread sends them.
    """

    def __init__(self, exporter: SpanExporter, sample_ratio: float, epoch_s: float) -> None:
        """`sample_ratio`: of requests whose caller has not decided. `epoch_s`: what makes a time
        of the gateway's clock one since the epoch."""
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "radixgate-gateway"}),
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("radixgate.gateway", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._epoch_s = epoch_s

    def open(self, story: Story) -> RequestHead:
        """Begin its span, below the caller's; what workers see is below that."""
        head = story.head
        path = head.path.decode("latin-1")
        span = self._tracer.start_span(
            f"POST {path}",
            context=self._propagator.extract(_carrier(head.forwarded), context=Context()),
            kind=SpanKind.SERVER,
            start_time=self._ns(story.arrived_at),
            attributes={
                "http.request.method": "POST",
                "url.path": path,
                "radixgate.request_id": story.request_id,
            },
        )
        story.span = span
        carried: dict[str, str] = {}
        self._propagator.inject(carried, context=trace.set_span_in_context(span, Context()))
        lines = [f"{name}: {value}\r\n".encode("latin-1") for name, value in carried.items()]
        forwarded = b"".join([*_without_carried(head.forwarded), *lines])
        return msgspec.structs.replace(head, forwarded=forwarded)

    def tell(self, story: Story) -> None:
        """End its span, with its stages below it."""
        span, ended = story.span, story.ended_at
        assert isinstance(span, trace.Span)
        assert ended is not None
        if span.is_recording():
            self._stages(span, story, ended)
            span.set_attributes(_attributes(story))
            if story.outcome in _OURS:
                span.set_status(StatusCode.ERROR, story.outcome.value)
        span.end(end_time=self._ns(ended))

    def close(self) -> None:
        """Send what waits, for two seconds at most."""
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(_CLOSE_WITHIN_S)

    def _stages(self, span: trace.Span, story: Story, ended: float) -> None:
        below = trace.set_span_in_context(span, Context())
        first = story.first_token_at
        self._stage(below, "queue", story.arrived_at, story.began_at)
        began = story.began_at
        for told in story.attempts:
            self._stage(
                below,
                "choose",
                began,
                told.chosen_at,
                {
                    "radixgate.worker": told.lease.worker.id,
                    "radixgate.reason": told.lease.choice.branch,
                    "radixgate.predicted_cached_tokens": told.lease.predicted_cached_tokens,
                    "radixgate.predicted_ttft_s": told.lease.predicted_ttft_s,
                },
            )
            over = ended if told.ended_at is None else told.ended_at
            if first is None or not told.chosen_at <= first <= over:
                self._stage(below, "failed attempt", told.chosen_at, over)
            else:
                self._stage(below, "first token", told.chosen_at, first)
            began = over
        if first is not None:
            self._stage(below, "stream", first, ended)

    def _stage(
        self,
        below: Context,
        name: str,
        start: float,
        end: float,
        attributes: Mapping[str, str | int | float] | None = None,
    ) -> None:
        stage = self._tracer.start_span(
            name, context=below, start_time=self._ns(start), attributes=attributes
        )
        stage.end(end_time=self._ns(end))

    def _ns(self, at: float) -> int:
        return int((at + self._epoch_s) * 1e9)


def _attributes(story: Story) -> Mapping[str, str | int]:
    """Of the whole request; what is not known is left out."""
    found: dict[str, str | int | None] = {
        "http.response.status_code": story.status or None,
        "radixgate.outcome": story.outcome.value,
        "radixgate.tenant": story.tenant,
        "gen_ai.request.model": None if story.ask is None else story.ask.name,
    }
    counts = story.counts
    if counts is not None:
        found["gen_ai.usage.input_tokens"] = counts.prompt
        found["gen_ai.usage.output_tokens"] = counts.completion
        found["radixgate.cached_tokens"] = counts.cached
    return {name: value for name, value in found.items() if value is not None}


def _carrier(forwarded: bytes) -> Mapping[str, str]:
    """The trace's fields among ready header lines, names in lower case; the first of each."""
    found: dict[str, str] = {}
    for line in forwarded.split(b"\r\n"):
        name, _, value = line.partition(b": ")
        if name in _CARRIED:
            found.setdefault(name.decode(), value.decode("latin-1").strip())
    return found


def _without_carried(forwarded: bytes) -> list[bytes]:
    lines = forwarded.split(b"\r\n")[:-1]
    return [line + b"\r\n" for line in lines if line.partition(b": ")[0] not in _CARRIED]
