"""llama.cpp through llama-cpp-python's low-level calls; runs in an environment of its own.

    python llama_cpp_low_level.py --model FILE.gguf

The prefix of a group is computed once and given to its sequences (`llama_memory_seq_cp` in a
unified cache), which is more sharing than its server does for requests that start together.
"""

import argparse
from collections.abc import Sequence

import llama_cpp
import numpy as np
from task_loop import Result, Task, answer_tasks, now, take_stdout

_BATCH = 512  # tokens
_SEQUENCES = 40
_CONTEXT = 24_576  # tokens of all sequences

# Sequence, token, position, whether its logits are wanted.
Row = tuple[int, int, int, bool]


class Engine:
    """A model with one context."""

    def __init__(self, path: str, threads: int) -> None:
        llama_cpp.llama_backend_init()
        self._model = llama_cpp.llama_model_load_from_file(
            path.encode(), llama_cpp.llama_model_default_params()
        )
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = _CONTEXT, _BATCH, _BATCH
        params.n_seq_max, params.kv_unified = _SEQUENCES, True
        params.n_threads = params.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        assert self._context
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._batch = llama_cpp.llama_batch_init(_BATCH, 0, 1)

    def answer(self, task: Task) -> Result:
        llama_cpp.llama_memory_clear(self._memory, True)
        start = now()
        computed, rows = self._shared_prefixes(task)
        last: dict[int, int] = {}
        for first in range(0, len(rows), _BATCH):
            last |= self._decode(rows[first : first + _BATCH])
        computed += len(rows)
        began = now()
        lengths = {sequence: len(prompt) for sequence, prompt in enumerate(task.prompts)}
        for _ in range(task.new_tokens - 1):
            last = self._decode([(s, t, lengths[s], True) for s, t in sorted(last.items())])
            lengths = {sequence: length + 1 for sequence, length in lengths.items()}
        end = now()
        return Result(end - start, end - began, computed)

    def _shared_prefixes(self, task: Task) -> tuple[int, list[Row]]:
        """Tokens computed for all groups, and the rows that remain."""
        prompts, shared = task.prompts, task.shared_tokens
        groups: dict[tuple[int, ...], list[int]] = {}
        for sequence, prompt in enumerate(prompts):
            groups.setdefault(tuple(prompt[:shared]), []).append(sequence)
        computed = 0
        for prefix, members in groups.items() if shared else ():
            for first in range(0, shared, _BATCH):
                part = range(first, min(first + _BATCH, shared))
                self._decode([(members[0], prefix[place], place, False) for place in part])
            computed += shared
            for other in members[1:]:
                llama_cpp.llama_memory_seq_cp(self._memory, members[0], other, 0, -1)
        rows = [
            (sequence, prompt[place], place, place == len(prompt) - 1)
            for sequence, prompt in enumerate(prompts)
            for place in range(shared, len(prompt))
        ]
        return computed, rows

    def _decode(self, rows: Sequence[Row]) -> dict[int, int]:
        """The most likely next token of each sequence whose logits were wanted."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for place, (sequence, token, position, wanted) in enumerate(rows):
            batch.token[place] = token
            batch.pos[place] = position
            batch.n_seq_id[place] = 1
            batch.seq_id[place][0] = sequence
            batch.logits[place] = wanted
        failed = llama_cpp.llama_decode(self._context, batch)
        assert not failed, f"llama_decode returned {failed}"
        found = {}
        for place, (sequence, _, _, wanted) in enumerate(rows):
            if wanted:
                logits = llama_cpp.llama_get_logits_ith(self._context, place)
                row = np.ctypeslib.as_array(logits, shape=(self._vocab,))
                found[sequence] = int(row.argmax())
        return found


def main() -> None:
    results = take_stdout()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    answer_tasks(Engine(args.model, args.threads).answer, results)


if __name__ == "__main__":
    main()
