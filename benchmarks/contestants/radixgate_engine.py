"""Our engine, in this process and without a server."""

import argparse
import asyncio
from array import array

from task_loop import Result, Task, answer_tasks, now, take_stdout

from radixgate.clock import SystemClock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine
from radixgate.worker.engine.open_engine import open_engine
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.weights.model_store import open_model


class Ear:
    """Counts what it hears of one task."""

    def __init__(self, prompts: int) -> None:
        self.done = asyncio.Event()
        self.all_began = now()
        self.computed = 0
        self._silent = set(range(prompts))
        self._running = prompts

    def deliver(self, batch: pb.StepBatch) -> None:
        assert not batch.refused, batch.refused
        for item in batch.items:
            if item.token_ids and item.handle in self._silent:
                self._silent.remove(item.handle)
                if not self._silent:
                    self.all_began = now()
            if item.HasField("finish"):
                self.computed += item.counts.prompt - item.counts.cached_device
                self._running -= 1
        if not self._running:
            self.done.set()


async def play(engine: Engine, task: Task) -> Result:
    ear = Ear(len(task.prompts))
    start = now()
    for handle, prompt in enumerate(task.prompts):
        engine.submit(
            ear,
            pb.Submit(
                handle=handle,
                rid=str(handle),
                input_ids=array("I", prompt).tobytes(),
                sampling=pb.Sampling(temperature=0.0, max_tokens=task.new_tokens, ignore_eos=True),
                credit=1_000_000,
            ),
        )
    await ear.done.wait()
    end = now()
    engine.detach(ear)
    return Result(end - start, end - ear.all_began, ear.computed)


def main() -> None:
    results = take_stdout()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--kv", default="auto")
    parser.add_argument("--weights", default="fp32")
    parser.add_argument("--chunk", type=int, default=512)
    parser.add_argument("--policy", default="fcfs")
    parser.add_argument("--overlap", default="on", choices=("on", "off"))
    args = parser.parse_args()
    config = EngineConfig(
        model_path=args.model,
        threads=args.threads,
        attention_backend=args.backend,
        kv_cache_dtype=args.kv,
        weights=args.weights,
        chunked_prefill_size=args.chunk,
        schedule_policy=args.policy,
        disable_overlap_schedule=args.overlap == "off",
        max_total_tokens=40_000,
    )
    engine = open_engine(config, open_model(args.model), SystemClock())
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        engine.start()

    loop.run_until_complete(begin())
    answer_tasks(lambda task: loop.run_until_complete(play(engine, task)), results)
    engine.stop()


if __name__ == "__main__":
    main()
