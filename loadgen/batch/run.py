"""`radixgate batch`: what is left of the input, as many at a time as the fleet can use."""

import asyncio
import random
import sys
from collections import deque

import aiohttp
import msgspec
import uvloop

from radixgate.clock import Clock, SystemClock
from radixgate.errors import ConfigError
from radixgate.loadgen.batch.answer_file import AnswerFile
from radixgate.loadgen.batch.answering import Answered, Asker
from radixgate.loadgen.batch.config import BatchConfig
from radixgate.loadgen.batch.progress import BatchProgress, BatchTally, open_batch_progress
from radixgate.loadgen.batch.saturation import Saturation
from radixgate.loadgen.batch.work_list import WorkList
from radixgate.loadgen.client import StreamClient, headers_of
from radixgate.open_files import raise_limit

_INTERRUPTED = 130
_START_A_WORKER = 2
_START = 4  # where the server tells of no workers
_ASK_TIMEOUT_S = 5.0


def run_batch(config: BatchConfig) -> int:
    """Answer every line of the input that has no answer in the output yet.

    The exit code is 1 if a line's answer is an error, 130 after Ctrl-C (start it again to go on),
    else 0. Raises ConfigError for files that cannot be used, GatewayError if the server is gone.
    """
    raise_limit()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            return loop.run(_run(config, SystemClock()))
    except KeyboardInterrupt:
        print("interrupted: what is answered is kept; start it again to go on", file=sys.stderr)
        return _INTERRUPTED


async def _run(config: BatchConfig, clock: Clock) -> int:
    work = WorkList(config.input_path)
    try:
        answers = AnswerFile(config.output_path)
    except ConfigError:
        work.close()
        raise
    try:
        left = _left(config, work, answers)
        tally = BatchTally(len(work), len(work) - len(left), clock, config.deadline_s)
        async with StreamClient(
            config.url,
            clock,
            headers=headers_of(config.header),
            idle_timeout_s=config.request_timeout_s,
            request_timeout_s=config.request_timeout_s,
        ) as client:
            asker = Asker(
                client,
                clock,
                random.Random(),
                attempts=config.attempts,
                give_up_s=config.give_up_s,
            )
            saturation = await _saturation(config, client)
            progress = open_batch_progress(len(work), shown=not config.disable_tqdm)
            player = BatchPlayer(asker, work, answers, saturation, clock)
            try:
                await player.play(left, tally, progress)
            finally:
                progress.close()
    finally:
        await answers.close()
        work.close()
    if saturation.steps:
        print(saturation.table())
    print(_closing(config, tally, len(left)), flush=True)
    return 1 if tally.failed else 0


class BatchPlayer:
    """Keeps as many lines in flight as the saturation search says; holds no answer for long."""

    def __init__(
        self,
        asker: Asker,
        work: WorkList,
        answers: AnswerFile,
        saturation: Saturation,
        clock: Clock,
    ) -> None:
        self._asker = asker
        self._work = work
        self._answers = answers
        self._saturation = saturation
        self._clock = clock

    async def play(self, ids: list[str], tally: BatchTally, progress: BatchProgress) -> None:
        """Done when every line's answer is on the disk. Raises the first error, ending the rest."""
        waiting = deque(ids)
        running: set[asyncio.Task[Answered]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < self._saturation.in_flight:
                    running.add(asyncio.create_task(self._one(waiting.popleft())))
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    tally.note(task.result())
                progress.show(tally, len(running) + len(ended))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _one(self, custom_id: str) -> Answered:
        answered = await self._asker.answer(self._work.read(custom_id))
        await self._answers.append(custom_id, answered.line)
        if answered.overloads:
            self._saturation.note_refusal()
        self._saturation.note(self._clock.now(), answered.completion_tokens)
        return answered


def _left(config: BatchConfig, work: WorkList, answers: AnswerFile) -> list[str]:
    """What has no answer yet, in the order of the input."""
    strange = next((one for one in answers.done if one not in work), None)
    if strange is not None:
        raise ConfigError(
            f"--output {config.output_path} has an answer to {strange!r}, which is not in "
            f"{config.input_path}: give another --output"
        )
    if answers.repaired_bytes:
        print(f"repaired: {answers.repaired_bytes} bytes of an unfinished line are removed")
    if answers.done:
        print(f"going on: {len(answers.done)} of {len(work)} lines have their answer")
    return [custom_id for custom_id in work.ids() if custom_id not in answers.done]


async def _saturation(config: BatchConfig, client: StreamClient) -> Saturation:
    if config.max_concurrency is not None:
        return Saturation.fixed(config.max_concurrency)
    workers = await _ready_workers(client)
    start = _START if workers is None else _START_A_WORKER * workers
    return Saturation(start, config.highest_concurrency, window_s=config.window_s)


async def _ready_workers(client: StreamClient) -> int | None:
    """None: the server is no gateway, or not there yet."""
    try:
        told = msgspec.convert(await client.get_json("/workers", _ASK_TIMEOUT_S), _Workers)
    except (aiohttp.ClientError, OSError, ValueError):
        return None
    return sum(worker.state == "ready" for worker in told.workers) or None


class _Worker(msgspec.Struct):
    state: str


class _Workers(msgspec.Struct):
    workers: list[_Worker]


def _closing(config: BatchConfig, tally: BatchTally, lines: int) -> str:
    seconds = tally.elapsed_s
    rate = lines / seconds if seconds > 0 else 0.0
    said = (
        f"{lines} lines in {seconds:.1f} s ({rate:.2f}/s), {tally.failed} with an error; "
        f"{tally.prompt_tokens} prompt and {tally.completion_tokens} completion tokens; "
        f"all {tally.done} answers are in {config.output_path}"
    )
    if config.deadline_s is None:
        return said
    kept = "kept" if seconds <= config.deadline_s else "MISSED"
    return f"{said}\ndeadline of {config.deadline_s:g} s {kept}"
