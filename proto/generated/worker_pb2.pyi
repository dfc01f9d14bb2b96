from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEVICE: _ClassVar[Tier]
    HOST: _ClassVar[Tier]
    STORAGE: _ClassVar[Tier]
DEVICE: Tier
HOST: Tier
STORAGE: Tier

class Command(_message.Message):
    __slots__ = ("hello", "submit", "abort", "credit", "credits")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    ABORT_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    submit: Submit
    abort: Abort
    credit: Credit
    credits: Credits
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., submit: _Optional[_Union[Submit, _Mapping]] = ..., abort: _Optional[_Union[Abort, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., credits: _Optional[_Union[Credits, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("gateway_id", "version", "reads_tokens")
    GATEWAY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    READS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    gateway_id: str
    version: int
    reads_tokens: bool
    def __init__(self, gateway_id: _Optional[str] = ..., version: _Optional[int] = ..., reads_tokens: _Optional[bool] = ...) -> None: ...

class Submit(_message.Message):
    __slots__ = ("handle", "rid", "input_ids", "prior_output_ids", "sampling", "adapter", "salt", "priority", "deadline_s", "credit", "return_text", "first_choice", "number")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    RID_FIELD_NUMBER: _ClassVar[int]
    INPUT_IDS_FIELD_NUMBER: _ClassVar[int]
    PRIOR_OUTPUT_IDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    RETURN_TEXT_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHOICE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    handle: int
    rid: str
    input_ids: bytes
    prior_output_ids: bytes
    sampling: Sampling
    adapter: str
    salt: str
    priority: int
    deadline_s: float
    credit: int
    return_text: bool
    first_choice: int
    number: int
    def __init__(self, handle: _Optional[int] = ..., rid: _Optional[str] = ..., input_ids: _Optional[bytes] = ..., prior_output_ids: _Optional[bytes] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., adapter: _Optional[str] = ..., salt: _Optional[str] = ..., priority: _Optional[int] = ..., deadline_s: _Optional[float] = ..., credit: _Optional[int] = ..., return_text: _Optional[bool] = ..., first_choice: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "seed", "n", "max_tokens", "min_tokens", "stop", "stop_token_ids", "ignore_eos", "skip_special_tokens", "no_stop_trim", "top_logprobs", "logprob_start", "token_ids_logprob")
    class LogitBiasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: float
        def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_EOS_FIELD_NUMBER: _ClassVar[int]
    SKIP_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NO_STOP_TRIM_FIELD_NUMBER: _ClassVar[int]
    TOP_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_START_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_LOGPROB_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    logit_bias: _containers.ScalarMap[int, float]
    seed: int
    n: int
    max_tokens: int
    min_tokens: int
    stop: _containers.RepeatedScalarFieldContainer[str]
    stop_token_ids: _containers.RepeatedScalarFieldContainer[int]
    ignore_eos: bool
    skip_special_tokens: bool
    no_stop_trim: bool
    top_logprobs: int
    logprob_start: int
    token_ids_logprob: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ..., min_p: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., logit_bias: _Optional[_Mapping[int, float]] = ..., seed: _Optional[int] = ..., n: _Optional[int] = ..., max_tokens: _Optional[int] = ..., min_tokens: _Optional[int] = ..., stop: _Optional[_Iterable[str]] = ..., stop_token_ids: _Optional[_Iterable[int]] = ..., ignore_eos: _Optional[bool] = ..., skip_special_tokens: _Optional[bool] = ..., no_stop_trim: _Optional[bool] = ..., top_logprobs: _Optional[int] = ..., logprob_start: _Optional[int] = ..., token_ids_logprob: _Optional[_Iterable[int]] = ...) -> None: ...

class Abort(_message.Message):
    __slots__ = ("handle",)
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    handle: int
    def __init__(self, handle: _Optional[int] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("handle", "tokens")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    handle: int
    tokens: int
    def __init__(self, handle: _Optional[int] = ..., tokens: _Optional[int] = ...) -> None: ...

class Credits(_message.Message):
    __slots__ = ("handles", "tokens")
    HANDLES_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    handles: _containers.RepeatedScalarFieldContainer[int]
    tokens: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, handles: _Optional[_Iterable[int]] = ..., tokens: _Optional[_Iterable[int]] = ...) -> None: ...

class StepBatch(_message.Message):
    __slots__ = ("step", "items", "refused", "tokens")
    STEP_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    step: int
    items: _containers.RepeatedCompositeFieldContainer[Item]
    refused: _containers.RepeatedCompositeFieldContainer[Refused]
    tokens: Tokens
    def __init__(self, step: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., refused: _Optional[_Iterable[_Union[Refused, _Mapping]]] = ..., tokens: _Optional[_Union[Tokens, _Mapping]] = ...) -> None: ...

class Tokens(_message.Message):
    __slots__ = ("handles", "token_ids", "texts")
    HANDLES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    handles: _containers.RepeatedScalarFieldContainer[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, handles: _Optional[_Iterable[int]] = ..., token_ids: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("handle", "choice", "token_ids", "text", "logprobs", "finish", "counts", "weight_version", "input_logprobs")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    handle: int
    choice: int
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    text: str
    logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprobs]
    finish: Finish
    counts: Counts
    weight_version: str
    input_logprobs: _containers.RepeatedCompositeFieldContainer[TokenLogprobs]
    def __init__(self, handle: _Optional[int] = ..., choice: _Optional[int] = ..., token_ids: _Optional[_Iterable[int]] = ..., text: _Optional[str] = ..., logprobs: _Optional[_Iterable[_Union[TokenLogprobs, _Mapping]]] = ..., finish: _Optional[_Union[Finish, _Mapping]] = ..., counts: _Optional[_Union[Counts, _Mapping]] = ..., weight_version: _Optional[str] = ..., input_logprobs: _Optional[_Iterable[_Union[TokenLogprobs, _Mapping]]] = ...) -> None: ...

class TokenLogprobs(_message.Message):
    __slots__ = ("token_id", "logprob", "top", "of_ids")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    OF_IDS_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    logprob: float
    top: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    of_ids: _containers.RepeatedCompositeFieldContainer[TokenLogprob]
    def __init__(self, token_id: _Optional[int] = ..., logprob: _Optional[float] = ..., top: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ..., of_ids: _Optional[_Iterable[_Union[TokenLogprob, _Mapping]]] = ...) -> None: ...

class TokenLogprob(_message.Message):
    __slots__ = ("token_id", "logprob")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    LOGPROB_FIELD_NUMBER: _ClassVar[int]
    token_id: int
    logprob: float
    def __init__(self, token_id: _Optional[int] = ..., logprob: _Optional[float] = ...) -> None: ...

class Finish(_message.Message):
    __slots__ = ("reason", "token_id", "stop", "message", "status")
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNSPECIFIED: _ClassVar[Finish.Reason]
        STOP: _ClassVar[Finish.Reason]
        LENGTH: _ClassVar[Finish.Reason]
        ABORT: _ClassVar[Finish.Reason]
    UNSPECIFIED: Finish.Reason
    STOP: Finish.Reason
    LENGTH: Finish.Reason
    ABORT: Finish.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    reason: Finish.Reason
    token_id: int
    stop: str
    message: str
    status: int
    def __init__(self, reason: _Optional[_Union[Finish.Reason, str]] = ..., token_id: _Optional[int] = ..., stop: _Optional[str] = ..., message: _Optional[str] = ..., status: _Optional[int] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("prompt", "cached_device", "cached_host", "cached_storage", "completion", "queue_s", "e2e_s", "retractions")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    CACHED_DEVICE_FIELD_NUMBER: _ClassVar[int]
    CACHED_HOST_FIELD_NUMBER: _ClassVar[int]
    CACHED_STORAGE_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_S_FIELD_NUMBER: _ClassVar[int]
    E2E_S_FIELD_NUMBER: _ClassVar[int]
    RETRACTIONS_FIELD_NUMBER: _ClassVar[int]
    prompt: int
    cached_device: int
    cached_host: int
    cached_storage: int
    completion: int
    queue_s: float
    e2e_s: float
    retractions: int
    def __init__(self, prompt: _Optional[int] = ..., cached_device: _Optional[int] = ..., cached_host: _Optional[int] = ..., cached_storage: _Optional[int] = ..., completion: _Optional[int] = ..., queue_s: _Optional[float] = ..., e2e_s: _Optional[float] = ..., retractions: _Optional[int] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("handle", "status", "field", "message")
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    handle: int
    status: int
    field: str
    message: str
    def __init__(self, handle: _Optional[int] = ..., status: _Optional[int] = ..., field: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class WatchKvRequest(_message.Message):
    __slots__ = ("epoch", "seq")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    seq: int
    def __init__(self, epoch: _Optional[int] = ..., seq: _Optional[int] = ...) -> None: ...

class KvUpdate(_message.Message):
    __slots__ = ("epoch", "seq", "step", "snapshot", "heartbeat")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    seq: int
    step: KvStep
    snapshot: KvSnapshotPart
    heartbeat: KvHeartbeat
    def __init__(self, epoch: _Optional[int] = ..., seq: _Optional[int] = ..., step: _Optional[_Union[KvStep, _Mapping]] = ..., snapshot: _Optional[_Union[KvSnapshotPart, _Mapping]] = ..., heartbeat: _Optional[_Union[KvHeartbeat, _Mapping]] = ...) -> None: ...

class KvStep(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[KvEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[KvEvent, _Mapping]]] = ...) -> None: ...

class KvEvent(_message.Message):
    __slots__ = ("stored", "removed", "pending", "settled")
    STORED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    stored: KvStored
    removed: KvRemoved
    pending: KvPending
    settled: KvSettled
    def __init__(self, stored: _Optional[_Union[KvStored, _Mapping]] = ..., removed: _Optional[_Union[KvRemoved, _Mapping]] = ..., pending: _Optional[_Union[KvPending, _Mapping]] = ..., settled: _Optional[_Union[KvSettled, _Mapping]] = ...) -> None: ...

class KvStored(_message.Message):
    __slots__ = ("parent", "ids", "tier")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    parent: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    tier: Tier
    def __init__(self, parent: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ..., tier: _Optional[_Union[Tier, str]] = ...) -> None: ...

class KvRemoved(_message.Message):
    __slots__ = ("ids", "tier")
    IDS_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    tier: Tier
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., tier: _Optional[_Union[Tier, str]] = ...) -> None: ...

class KvPending(_message.Message):
    __slots__ = ("key", "parent", "ids")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    key: int
    parent: int
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, key: _Optional[int] = ..., parent: _Optional[int] = ..., ids: _Optional[_Iterable[int]] = ...) -> None: ...

class KvSettled(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: int
    def __init__(self, key: _Optional[int] = ...) -> None: ...

class KvSnapshotPart(_message.Message):
    __slots__ = ("first", "last", "stored", "pending")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    first: bool
    last: bool
    stored: _containers.RepeatedCompositeFieldContainer[KvStored]
    pending: _containers.RepeatedCompositeFieldContainer[KvPending]
    def __init__(self, first: _Optional[bool] = ..., last: _Optional[bool] = ..., stored: _Optional[_Iterable[_Union[KvStored, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[KvPending, _Mapping]]] = ...) -> None: ...

class KvHeartbeat(_message.Message):
    __slots__ = ("digests",)
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    digests: _containers.RepeatedCompositeFieldContainer[KvDigest]
    def __init__(self, digests: _Optional[_Iterable[_Union[KvDigest, _Mapping]]] = ...) -> None: ...

class KvDigest(_message.Message):
    __slots__ = ("tier", "count", "xor")
    TIER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    XOR_FIELD_NUMBER: _ClassVar[int]
    tier: Tier
    count: int
    xor: int
    def __init__(self, tier: _Optional[_Union[Tier, str]] = ..., count: _Optional[int] = ..., xor: _Optional[int] = ...) -> None: ...

class WatchLoadRequest(_message.Message):
    __slots__ = ("gateway_id",)
    GATEWAY_ID_FIELD_NUMBER: _ClassVar[int]
    gateway_id: str
    def __init__(self, gateway_id: _Optional[str] = ...) -> None: ...

class LoadReport(_message.Message):
    __slots__ = ("running", "waiting", "queued_uncached_tokens", "queued_uncached_tokens_yours", "kv_tokens_used", "kv_tokens_evictable", "kv_tokens_total", "prefill_tokens_total", "prefill_busy_us_total", "decode_step_s", "paused", "phase", "weight_version", "instance_id", "seen_number")
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    QUEUED_UNCACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_UNCACHED_TOKENS_YOURS_FIELD_NUMBER: _ClassVar[int]
    KV_TOKENS_USED_FIELD_NUMBER: _ClassVar[int]
    KV_TOKENS_EVICTABLE_FIELD_NUMBER: _ClassVar[int]
    KV_TOKENS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PREFILL_TOKENS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PREFILL_BUSY_US_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DECODE_STEP_S_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    SEEN_NUMBER_FIELD_NUMBER: _ClassVar[int]
    running: int
    waiting: int
    queued_uncached_tokens: int
    queued_uncached_tokens_yours: int
    kv_tokens_used: int
    kv_tokens_evictable: int
    kv_tokens_total: int
    prefill_tokens_total: int
    prefill_busy_us_total: int
    decode_step_s: float
    paused: bool
    phase: str
    weight_version: str
    instance_id: str
    seen_number: int
    def __init__(self, running: _Optional[int] = ..., waiting: _Optional[int] = ..., queued_uncached_tokens: _Optional[int] = ..., queued_uncached_tokens_yours: _Optional[int] = ..., kv_tokens_used: _Optional[int] = ..., kv_tokens_evictable: _Optional[int] = ..., kv_tokens_total: _Optional[int] = ..., prefill_tokens_total: _Optional[int] = ..., prefill_busy_us_total: _Optional[int] = ..., decode_step_s: _Optional[float] = ..., paused: _Optional[bool] = ..., phase: _Optional[str] = ..., weight_version: _Optional[str] = ..., instance_id: _Optional[str] = ..., seen_number: _Optional[int] = ...) -> None: ...

class FlushRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FlushReply(_message.Message):
    __slots__ = ("ok", "message")
    OK_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    message: str
    def __init__(self, ok: _Optional[bool] = ..., message: _Optional[str] = ...) -> None: ...

class GetInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkerInfo(_message.Message):
    __slots__ = ("instance_id", "model", "model_path", "weights_id", "weight_version", "page_size", "capacity_tokens", "context_length", "vocab_size", "tokenizer_hash", "http_port", "max_running_requests", "version", "contract")
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_PATH_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_HASH_FIELD_NUMBER: _ClassVar[int]
    HTTP_PORT_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNNING_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    instance_id: str
    model: str
    model_path: str
    weights_id: str
    weight_version: str
    page_size: int
    capacity_tokens: int
    context_length: int
    vocab_size: int
    tokenizer_hash: str
    http_port: int
    max_running_requests: int
    version: str
    contract: int
    def __init__(self, instance_id: _Optional[str] = ..., model: _Optional[str] = ..., model_path: _Optional[str] = ..., weights_id: _Optional[str] = ..., weight_version: _Optional[str] = ..., page_size: _Optional[int] = ..., capacity_tokens: _Optional[int] = ..., context_length: _Optional[int] = ..., vocab_size: _Optional[int] = ..., tokenizer_hash: _Optional[str] = ..., http_port: _Optional[int] = ..., max_running_requests: _Optional[int] = ..., version: _Optional[str] = ..., contract: _Optional[int] = ...) -> None: ...

class GetTokenizerRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TokenizerPart(_message.Message):
    __slots__ = ("data", "last")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    last: bool
    def __init__(self, data: _Optional[bytes] = ..., last: _Optional[bool] = ...) -> None: ...
