"""The server under test: warmed up, flushed, and played a schedule."""

from collections import Counter

import aiohttp
import msgspec

from radixgate.analysis.records import RequestRecord
from radixgate.clock import Clock
from radixgate.errors import ConfigError
from radixgate.loadgen.answers import Answer, read_answer
from radixgate.loadgen.client import StreamClient, headers_of
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.random_lengths import warmup_prompts
from radixgate.loadgen.exchange import Exchange
from radixgate.loadgen.progress import NoProgress, Progress
from radixgate.loadgen.runner import Runner
from radixgate.loadgen.schedule import Schedule, ScheduledRequest, plan
from radixgate.loadgen.targets import NATIVE_BACKENDS, BodyFields, Target, target_for

_ASK_TIMEOUT_S = 10.0
_FLUSH_TIMEOUT_S = 60.0


class Server:
    """One endpoint over one pool of connections."""

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
        """Raises ConfigError if the server does not."""
        path = "/flush_cache"
        try:
            status = await self._client.post(path, _FLUSH_TIMEOUT_S)
        except (aiohttp.ClientError, OSError) as error:
            raise ConfigError(f"--flush-cache: {self._config.url}{path}: {error}") from error
        if status != 200:
            raise ConfigError(f"--flush-cache: {self._config.url}{path} answered {status}")

    async def play(
        self, schedule: Schedule, progress: Progress, start_s: float | None = None
    ) -> list[RequestRecord]:
        """`start_s` as the runner takes it."""
        runner = Runner(
            self._send,
            self._read,
            self._clock,
            progress,
            max_concurrency=self._config.max_concurrency,
        )
        return await runner.play(schedule, start_s)

    async def _send(self, request: ScheduledRequest) -> Exchange:
        return await self._client.exchange(self._target.path, self._target.body(request))

    def _read(self, exchange: Exchange) -> Answer:
        return read_answer(self._target, exchange)


def client_of(config: BenchConfig, clock: Clock) -> StreamClient:
    """A pool of connections to the configured server."""
    return StreamClient(
        config.url,
        clock,
        headers=headers_of(config.header),
        idle_timeout_s=config.idle_timeout_s,
        request_timeout_s=config.request_timeout_s,
    )


def server_of(config: BenchConfig, client: StreamClient, model: str, clock: Clock) -> Server:
    """Raises ConfigError for an --extra-request-body that is no object."""
    fields = BodyFields.of(config, model, _extra_body(config))
    return Server(config, client, target_for(config.backend, fields), clock)


async def model_of(config: BenchConfig, client: StreamClient) -> str:
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


def _extra_body(config: BenchConfig) -> dict[str, object]:
    if config.extra_request_body is None:
        return {}
    try:
        return msgspec.json.decode(config.extra_request_body, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise ConfigError(f"--extra-request-body must be a JSON object: {error}") from error
