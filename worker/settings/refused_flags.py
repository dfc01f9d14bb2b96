"""SGLang's server flags that the worker does not take, each with the reason.

A flag that becomes a setting of the worker leaves this table; having both is an error at import.
"""

from collections.abc import Mapping

from radixgate.configs.command import Refusal

_ONE_DEVICE = "one worker is one process on one device; start one worker per replica"
_ONE_NODE = "one worker is one node"
_NO_EXPERTS = "mixture-of-experts models are not supported"
_NO_DRAFTS = "speculative decoding is not supported yet"
_NO_TIERS = "the cache has one tier, the KV pool; size it with --max-total-tokens"
_ONE_ROLE = "a worker always does both prefill and decode"

REFUSED: Mapping[str, Refusal] = {
    "--ssl-keyfile-password": Refusal(
        "anybody could read it in the process list; give a key without a password"
    ),
    "--enable-ssl-refresh": Refusal("certificates are read at start; restart the worker"),
    "--tp-size": Refusal(_ONE_DEVICE, accepts=("1",)),
    "--tensor-parallel-size": Refusal(_ONE_DEVICE, accepts=("1",)),
    "--tp": Refusal(_ONE_DEVICE, accepts=("1",)),
    "--pp-size": Refusal(_ONE_DEVICE, accepts=("1",)),
    "--pipeline-parallel-size": Refusal(_ONE_DEVICE, accepts=("1",)),
    "--dp-size": Refusal(
        "start as many workers and give them all to the gateway's --worker-urls", accepts=("1",)
    ),
    "--data-parallel-size": Refusal(
        "start as many workers and give them all to the gateway's --worker-urls", accepts=("1",)
    ),
    "--dp": Refusal(
        "start as many workers and give them all to the gateway's --worker-urls", accepts=("1",)
    ),
    "--enable-dp-attention": Refusal(_ONE_DEVICE),
    "--nnodes": Refusal(_ONE_NODE, accepts=("1",)),
    "--node-rank": Refusal(_ONE_NODE, accepts=("0",)),
    "--dist-init-addr": Refusal(_ONE_NODE),
    "--ep-size": Refusal(_NO_EXPERTS, accepts=("1",)),
    "--expert-parallel-size": Refusal(_NO_EXPERTS, accepts=("1",)),
    "--ep": Refusal(_NO_EXPERTS, accepts=("1",)),
    "--enable-ep-moe": Refusal(_NO_EXPERTS),
    "--ep-num-redundant-experts": Refusal(_NO_EXPERTS, accepts=("0",)),
    "--enable-eplb": Refusal(_NO_EXPERTS),
    "--eplb-algorithm": Refusal(_NO_EXPERTS),
    "--eplb-rebalance-num-iterations": Refusal(_NO_EXPERTS),
    "--quantization": Refusal(
        "weights are used in the form they are loaded, as fp32; give a quantized GGUF file to "
        "--model-path"
    ),
    "--speculative-algorithm": Refusal(_NO_DRAFTS),
    "--speculative-draft-model-path": Refusal(_NO_DRAFTS),
    "--speculative-num-steps": Refusal(_NO_DRAFTS),
    "--speculative-eagle-topk": Refusal(_NO_DRAFTS),
    "--speculative-num-draft-tokens": Refusal(_NO_DRAFTS),
    "--enable-hierarchical-cache": Refusal(_NO_TIERS),
    "--hicache-ratio": Refusal(_NO_TIERS),
    "--hicache-size": Refusal(_NO_TIERS, accepts=("0",)),
    "--hicache-write-policy": Refusal(_NO_TIERS),
    "--hicache-io-backend": Refusal(_NO_TIERS),
    "--hicache-mem-layout": Refusal(_NO_TIERS),
    "--hicache-storage-backend": Refusal(_NO_TIERS),
    "--hicache-storage-prefetch-policy": Refusal(_NO_TIERS),
    "--grammar-backend": Refusal("constrained decoding is not supported yet", accepts=("none",)),
    "--disaggregation-mode": Refusal(_ONE_ROLE, accepts=("null",)),
    "--disaggregation-transfer-backend": Refusal(_ONE_ROLE),
    "--disaggregation-bootstrap-port": Refusal(_ONE_ROLE),
    "--disaggregation-ib-device": Refusal(_ONE_ROLE),
    "--kv-events-config": Refusal("KV events go to gateways over gRPC; there is no publisher"),
    # The worker does this without being told to.
    "--disable-cuda-graph": Refusal("takes no value; CUDA graphs are never used", accepts=("",)),
}
