"""Flags of SGLang's bench that ours does not take, each with the reason.

A flag that becomes a setting of the bench leaves this table; having both is an error at import.
"""

from collections.abc import Mapping

from radixgate.configs.command import Refusal

_COUNTED_BY_SERVER = "prompts are made of one-token words, and the server counts the tokens"
REFUSED: Mapping[str, Refusal] = {
    "--tokenizer": Refusal(f"{_COUNTED_BY_SERVER}; --dataset-name random-ids is exact"),
    "--tokenize-prompt": Refusal("use --dataset-name random-ids, which sends token ids"),
    "--apply-chat-template": Refusal("use --backend openai-chat: the server applies its template"),
    "--disable-stream": Refusal("TTFT and ITL are read off the stream"),
    "--return-logprob": Refusal("use --extra-request-body '{\"return_logprob\": true}'"),
    "--lora-name": Refusal("there are no adapters"),
    "--profile": Refusal("the server has no profiler to start"),
    "--pd-separated": Refusal("the gateway decides which worker prefills"),
    "--plot-throughput": Refusal("the rates are in the table and in --output-file"),
    "--prompt-suffix": Refusal("put the suffix into the file of --dataset-name custom"),
    "--mooncake-workload": Refusal("nothing is downloaded: give the file with --dataset-path"),
    "--mooncake-num-rounds": Refusal("a trace's rows are played as they are, with their sessions"),
    "--ready-check-timeout-sec": Refusal("start the server first; its port is asked once"),
    "--print-requests": Refusal("prompts are not logged; --schedule-file holds them"),
    "--image-count": Refusal("there are no image datasets"),
    "--image-resolution": Refusal("there are no image datasets"),
}
