"""Whoever is told of requests and decisions, opened together and closed together."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.fleet.journal import Journal
from radixgate.fleet.rule import Rule
from radixgate.gateway.exchange.narrated import Opening
from radixgate.gateway.observe.decision_log import DecisionLog
from radixgate.gateway.observe.line_writer import LineWriter
from radixgate.gateway.observe.request_log import RequestLog
from radixgate.gateway.observe.story import Teller
from radixgate.gateway.settings.observe_config import ObserveConfig


class Traces(Teller, Opening, Protocol):
    """Spans of requests, whatever they are made with."""

    def close(self) -> None: ...


class Observers:
    """Of one process. Everything is off where nothing is configured."""

    def __init__(
        self,
        config: ObserveConfig,
        rule: Rule,
        clock: Clock,
        aims_s: tuple[float | None, float | None] = (None, None),
    ) -> None:
        """`aims_s`: times to the first token and between tokens that are to be kept.

        Raises ConfigError for a file that cannot be opened, or an extra that is not installed.
        """
        self.aims_s = aims_s
        self.tellers: Sequence[Teller] = ()
        self.opening: Opening | None = None
        self.journal: Journal | None = None
        self._logs: dict[str, RequestLog | DecisionLog] = {}
        self._closers: list[Callable[[], None]] = []
        epoch_s = time.time() - clock.now()
        url = config.traces_url
        if url is not None:
            tracing = _tracing(url, config.trace_sample_ratio, epoch_s)
            self.tellers, self.opening = (tracing,), tracing
            self._closers.append(tracing.close)
        if config.request_log is not None:
            lines = RequestLog(config.request_log, epoch_s)
            self._logs["requests"] = lines
            self.tellers = (*self.tellers, lines)
        if config.decision_log is not None:
            run = os.urandom(16)
            decisions = DecisionLog(config.decision_log, rule, clock, run=run, epoch_s=epoch_s)
            self._logs["decisions"] = decisions
            self.journal = decisions.journal
        self._closers += [log.close for log in self._logs.values()]

    def dropped(self) -> Mapping[str, int]:
        """Lines that are in no file, by log."""
        return {name: log.dropped for name, log in self._logs.items()}

    def reopen(self) -> None:
        """Files may have been moved away."""
        for log in self._logs.values():
            log.reopen()

    def close(self) -> None:
        """Write and send what waits, each for two seconds at most."""
        for close in self._closers:
            close()


def check(config: ObserveConfig) -> None:
    """Raises ConfigError for what `Observers` would; opens each file and closes it again."""
    for path in (config.request_log, config.decision_log):
        if path is not None:
            LineWriter(path).close()
    if config.traces_url is not None:
        _tracing(config.traces_url, config.trace_sample_ratio, 0.0).close()


def _tracing(url: str, sample_ratio: float, epoch_s: float) -> Traces:
    # Imported here alone: it needs the extra.
    try:
        from radixgate.gateway.observe.tracing import Tracing, exporter_to
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"--otlp-traces-endpoint needs {missing.name}: install radixgate[otel]"
        ) from missing
    return Tracing(exporter_to(url), sample_ratio, epoch_s)
