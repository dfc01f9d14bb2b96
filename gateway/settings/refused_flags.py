"""Flags of SGLang's and vLLM's routers that the gateway does not take, each with the reason.

A flag that becomes a setting of the gateway leaves this table; having both is an error at import.
"""

from collections.abc import Mapping

from radixgate.configs.command import Refusal

_ONE_ROLE = (
    "workers with separate prefill and decode roles are not supported yet; use --worker-urls"
)
_NAMED_WORKERS = (
    "nothing outside is asked for workers; name them by --worker-urls or --workers-file, or add"
    " them by POST /workers"
)
_BOUNDED_MIRROR = "the mirror keeps to --mirror-budget-bytes and --mirror-ttl-s as it grows"
_ONE_PORT = "metrics are at /metrics, on the gateway's own port"
_OWN_TOKENIZER = "workers of ours bring their tokenizer, and http:// workers need none here"

REFUSED: Mapping[str, Refusal] = {
    "--pd-disaggregation": Refusal(_ONE_ROLE),
    "--prefill": Refusal(_ONE_ROLE),
    "--decode": Refusal(_ONE_ROLE),
    "--prefill-policy": Refusal(_ONE_ROLE),
    "--decode-policy": Refusal(_ONE_ROLE),
    "--mini-lb": Refusal(_ONE_ROLE),
    "--service-discovery": Refusal(_NAMED_WORKERS),
    "--service-discovery-port": Refusal(_NAMED_WORKERS),
    "--service-discovery-namespace": Refusal(_NAMED_WORKERS),
    "--selector": Refusal(_NAMED_WORKERS),
    "--prefill-selector": Refusal(_NAMED_WORKERS),
    "--decode-selector": Refusal(_NAMED_WORKERS),
    "--static-backends": Refusal("they are --worker-urls here, with spaces between them"),
    "--static-models": Refusal("each worker is asked which model it serves"),
    "--routing-logic": Refusal("it is --policy here"),
    "--dp-aware": Refusal("start as many workers and give them all to --worker-urls"),
    # The gateway does this without being told to.
    "--enable-igw": Refusal("takes no value; one gateway serves many models", accepts=("",)),
    "--worker-startup-check-interval": Refusal("it is --health-check-interval-secs here"),
    "--health-check-endpoint": Refusal("workers are asked for /health", accepts=("/health",)),
    "--eviction-interval-secs": Refusal(_BOUNDED_MIRROR),
    "--max-tree-size": Refusal(_BOUNDED_MIRROR),
    "--disable-retries": Refusal("it is --retry-max-retries 0 here"),
    "--retry-backoff-multiplier": Refusal(
        "each wait is twice the one before", accepts=("2", "2.0")
    ),
    "--retry-jitter-factor": Refusal("a wait is off by a fifth at most", accepts=("0.2",)),
    "--cb-window-duration-secs": Refusal(
        "failures in a row open the breaker, whenever they were; --outlier-window-secs bounds a"
        " share of them"
    ),
    "--disable-circuit-breaker": Refusal("a very large --cb-failure-threshold never opens it"),
    "--rate-limit-tokens-per-second": Refusal(
        "--tenant-requests-per-minute and --tenant-tokens-per-minute bound rates"
    ),
    "--prometheus-port": Refusal(_ONE_PORT),
    "--prometheus-host": Refusal(_ONE_PORT),
    "--log-level": Refusal("the log has one level", accepts=("info", "INFO")),
    "--log-dir": Refusal(
        "the log goes to stderr; --request-log and --decision-log write files of their own"
    ),
    "--request-id-headers": Refusal("x-request-id is read", accepts=("x-request-id",)),
    "--cors-allowed-origins": Refusal(
        "pages of other sites are not served; a proxy in front may answer for them"
    ),
    "--model-path": Refusal(_OWN_TOKENIZER),
    "--tokenizer-path": Refusal(_OWN_TOKENIZER),
}
