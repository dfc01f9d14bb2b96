"""One measurement of one server: warm up, flush if asked, play the schedule, sum up."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
import msgspec

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import Summary, summarise
from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.loadgen.answers import Answer, read_answer
from radixgate.loadgen.client import StreamClient, headers_of
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.random_lengths import warmup_prompts
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import NoProgress, Progress
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import Schedule, ScheduledRequest, hash_of, plan
from radixgate.loadgen.targets import NATIVE_BACKENDS, BodyFields, Target, target_for

_ASK_TIMEOUT_S = 10.0
_FLUSH_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A finished measurement."""

    schedule_hash: str
    records: Sequence[RequestRecord]
    summary: Summary


async def measure(
    config: BenchConfig,
    schedule: Schedule,
    clock: Clock,
    progress: Callable[[int], Progress] = lambda total: NoProgress(),
) -> BenchRun:
    """Measure the configured server with `schedule`; `progress` is made for its length.

    Raises ConfigError if the server is not there, answers no warm-up request, or cannot take a
    prompt of the schedule.
    """
    extra = _extra_body(config)
    async with StreamClient(
        config.url,
        clock,
        headers=headers_of(config.header),
        idle_timeout_s=config.idle_timeout_s,
        request_timeout_s=config.request_timeout_s,
    ) as client:
        model = await _model(config, client)
        target = target_for(config.backend, BodyFields.of(config, model, extra))
        server = _Server(config, client, target, clock)
        server.check(schedule)
        await server.warm_up()
        if config.flush_cache:
            await server.flush()
        shown = progress(len(schedule))
        try:
            with _quiet_collector():
                records = await server.play(schedule, shown)
        finally:
            shown.close()
    return BenchRun(hash_of(schedule), records, summarise(records))


class _Server:
    """The server under test, as one endpoint over one pool of connections."""

    def __init__(
        self, config: BenchConfig, client: StreamClient, target: Target, clock: Clock
    ) -> None:
        self._config = config
        self._client = client
        self._target = target
        self._clock = clock

    def check(self, schedule: Schedule) -> None:
        """Raise ConfigError now, not in the middle of the run."""
        for request in schedule:
            self._target.body(request)

    async def warm_up(self) -> None:
        """Prompts of their own at the run's concurrency, so that the measured ones stay cold."""
        prompts = warmup_prompts(self._config)
        if not prompts:
            return
        records = await self.play(plan(prompts, [0.0] * len(prompts)), NoProgress())
        failures = Counter(f"{r.failure} ({r.failure_detail})" for r in records if not r.ok)
        if failures.total() == len(records):
            cause, count = failures.most_common(1)[0]
            raise ConfigError(
                f"{self._config.url}{self._target.path} answered none of {len(records)} warm-up "
                f"requests; {count} times: {cause}"
            )

    async def flush(self) -> None:
        path = "/flush_cache"
        try:
            status = await self._client.post(path, _FLUSH_TIMEOUT_S)
        except (aiohttp.ClientError, OSError) as error:
            raise ConfigError(f"--flush-cache: {self._config.url}{path}: {error}") from error
        if status != 200:
            raise ConfigError(f"--flush-cache: {self._config.url}{path} answered {status}")

    async def play(self, schedule: Schedule, progress: Progress) -> list[RequestRecord]:
        runner = Runner(
            self._send,
            self._read,
            self._clock,
            progress,
            max_concurrency=self._config.max_concurrency,
        )
        return await runner.play(schedule)

    async def _send(self, request: ScheduledRequest) -> Exchange:
        return await self._client.exchange(self._target.path, self._target.body(request))

    def _read(self, exchange: Exchange) -> Answer:
        return read_answer(self._target, exchange)


async def _model(config: BenchConfig, client: StreamClient) -> str:
    """The model to name: as configured, else the server's first; `/generate` needs none."""
    if config.model is not None:
        return config.model
    if config.backend in NATIVE_BACKENDS:
        return ""
    where = f"{config.url}/v1/models"
    try:
        found = await client.get_json("/v1/models", _ASK_TIMEOUT_S)
        return msgspec.convert(found, _Models).data[0].id
    except (aiohttp.ClientError, OSError, ValueError, IndexError) as error:
        raise ConfigError(f"no model to ask for: {where}: {error}; give --model") from error


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def _extra_body(config: BenchConfig) -> Mapping[str, object]:
    if config.extra_request_body is None:
        return {}
    try:
        return msgspec.json.decode(config.extra_request_body, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise ConfigError(f"--extra-request-body must be a JSON object: {error}") from error


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """What is alive now (the schedule above all) is not walked again by each collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
