"""SGLang's router flags that the gateway does not take, each with the reason.

A flag that becomes a setting of the gateway leaves this table; having both is an error at import.
"""

from collections.abc import Mapping

from radixgate.configs.command import Refusal

_ONE_ROLE = (
    "workers with separate prefill and decode roles are not supported yet; use --worker-urls"
)

REFUSED: Mapping[str, Refusal] = {
    "--pd-disaggregation": Refusal(_ONE_ROLE),
    "--prefill": Refusal(_ONE_ROLE),
    "--decode": Refusal(_ONE_ROLE),
    "--prefill-policy": Refusal(_ONE_ROLE),
    "--decode-policy": Refusal(_ONE_ROLE),
}
