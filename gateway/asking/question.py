"""From a request's JSON to what the fleet is asked: model, prompt, and the prompt's block ids."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Literal, Protocol, TypeVar

import msgspec
from xxhash import xxh3_64_intdigest

from radixgate.errors import RequestError, UnknownModel
from radixgate.fleet.fleet import Ask, Fleet, MirrorKey
from radixgate.gateway.asking.asked_model import asked_model
from radixgate.gateway.asking.foreign_request import read_foreign
from radixgate.gateway.asking.known_bodies import LEAST_BODY_BYTES, Hole, KnownBodies
from radixgate.gateway.asking.known_chains import (
    KnownChains,
    conversation_by_ids,
    fingerprint_by_ids,
)
from radixgate.gateway.asking.large_bodies import (
    LARGE_BODY_BYTES,
    LargeBodies,
    read_large,
    read_large_object,
)
from radixgate.gateway.asking.salted_body import salted_body
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.gateway.attempt.caller import ANYONE, Caller
from radixgate.proto.blocks import BYTES_A_TOKEN, root_id
from radixgate.proto.fields import decode_object
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.routing_text import conversation_of

T = TypeVar("T")
Body = Mapping[str, object]
Blocks = Mapping[MirrorKey, Sequence[int]]
BYTES: Literal["bytes"] = "bytes"
# Of models and salts.
_MAX_ROOTS = 4_096

_PARSERS: Mapping[bytes, Callable[[Body], GenerationRequest]] = {
    b"/v1/chat/completions": parse_chat,
    b"/v1/completions": parse_completion,
    b"/generate": parse_generate,
}


class Question(msgspec.Struct, frozen=True, gc=False):
    """A request, read as far as its workers need it."""

    ask: Ask
    generation: GenerationRequest | None = None  # None: only foreign workers serve the model
    prompt: PromptTokens | None = None
    stores: bool = False  # the worker keeps the answer, and what goes on from it comes back there

    def progress(self) -> AnswerProgress | None:
        """Nothing has come yet; None: our own workers have no part in it."""
        if self.generation is None or self.prompt is None:
            return None
        return AnswerProgress(self.generation, self.prompt.prompts)


class PromptReader(Protocol):
    """Turns prompts into the tokens and block ids of our own workers."""

    async def read(
        self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> tuple[PromptTokens, Blocks]:
        """Tokens of every prompt, and under each of `keys` the block ids of the first one.

        Raises RequestError (too long, a template that refuses), or WorkerFailed if no tokenizer
        could be had.
        """
        ...


class Asking:
    """Reads requests against the fleet as it is now."""

    def __init__(
        self,
        fleet: Fleet,
        prompts: PromptReader,
        stored: StoredResponses,
        unheard_of: Callable[[], int] = int,
    ) -> None:
        """`unheard_of`: workers that may yet say what they serve."""
        self._fleet = fleet
        self._unheard_of = unheard_of
        self._stored = stored
        self._prompts = prompts
        self._bodies = KnownBodies()
        self._large = LargeBodies()
        self._chains = KnownChains()
        self._root_of = lru_cache(maxsize=_MAX_ROOTS)(root_id)

    def read(
        self, path: bytes, body: bytes, caller: Caller = ANYONE, *, caught_up: bool = False
    ) -> Question | None:
        """None: `read_own` is the way, as workers of ours serve the model, as it would take too
        long here, or as another process may know who has what the request goes on from and we have
        not `caught_up` with it.

        What the caller may not use is to it as if it were not there.
        Raises RequestError naming the field, UnknownModel, UnknownResponse, or NoWorkerAvailable.
        """
        hole: Hole | None = None
        if len(body) >= LARGE_BODY_BYTES:
            return None
        try:
            if len(body) < LEAST_BODY_BYTES:
                request = read_foreign(path, body)
            else:
                owner = caller.tenant if caller.salted else None
                request, hole = self._bodies.read(path, body, owner or "")
        except RequestError:
            # The parser for our own workers has the last word about what is for them.
            if self._has_own(self._model_of(decode_object(body).get("model"), caller)):
                return None
            raise
        model = request.model
        if model is None or caller.models is not None or model not in self._fleet.models():
            model = self._model_of(model, caller)
        keys = self._fleet.mirrors_of(model)
        for key in keys:
            if key.unit != BYTES:
                return None
        before = request.goes_on_from
        if before is not None and not caught_up and self._stored.may_come(before):
            return None
        salt = _salt(caller, request.salt) if caller.salted else request.salt
        if request.adapter is not None and caller.models is not None:
            _check_adapters(decode_object(body).get("lora_path"), caller)
        # A long prompt is hashed once: all that names it is made of its blocks' ids.
        root = self._root_of(self._fleet.served.space_of(model), request.adapter, salt)
        prompt = request.prompt
        if hole is None:
            ids, left_out = self._chains.chain(root, prompt), 0
        else:
            prompt, ids, hole = self._around(root, path, body, prompt, hole)
            left_out = hole.size if hole else 0
        ask = Ask(
            model=model,
            prompt_tokens=(len(prompt) + left_out) // BYTES_A_TOKEN or 1,
            blocks=dict.fromkeys(keys, ids),
            session=request.session or conversation_by_ids(root, ids, prompt, hole),
            tenant=caller.tenant,
            priority=request.priority,
            fingerprint=fingerprint_by_ids(root, ids, prompt, left_out),
            only=None if before is None else self._holder(before, model, caller),
        )
        return Question(ask, stores=request.stores)

    def _holder(self, response_id: str, model: str, caller: Caller) -> str | None:
        """Who has stored it; None: nobody known who is here and serves the model.

        Raises UnknownResponse if it is another tenant's.
        """
        name = self._stored.worker_of(response_id, caller.tenant)
        view = None if name is None else self._fleet.worker(name)
        return name if view is not None and view.identity.serves(model) else None

    def _around(
        self, root: int, path: bytes, body: bytes, prompt: bytes, hole: Hole
    ) -> tuple[bytes, "array[int]", Hole | None]:
        """The prompt, which lacks the hole, and the ids of all of it. Without a hole the prompt is
        whole, as the ids were not known under this root."""
        ids = self._chains.around(root, prompt, hole)
        if ids is not None:
            return prompt, ids, hole
        prompt = read_foreign(path, body).prompt
        ids = self._chains.chain(root, prompt)
        self._chains.keep(root, ids, hole)
        return prompt, ids, None

    async def _read_large(self, path: bytes, body: bytes, caller: Caller) -> Question | None:
        """As `read`; None: only if workers of ours serve the model."""
        off = self._large.off_the_loop
        try:
            request = await off(partial(read_large, path, body))
        except RequestError:
            values = await off(partial(read_large_object, body))
            if self._has_own(self._model_of(values.get("model"), caller)):
                return None
            raise
        model = self._model_of(request.model, caller)
        keys = self._fleet.mirrors_of(model)
        if any(key.unit != BYTES for key in keys):
            return None
        before = request.goes_on_from
        if before is not None and self._stored.may_come(before) and self._stored.catch_up:
            await self._stored.catch_up()
        if request.adapter is not None and caller.models is not None:
            fields = await off(partial(decode_object, body))
            _check_adapters(fields.get("lora_path"), caller)
        salt = _salt(caller, request.salt) if caller.salted else request.salt
        root = self._root_of(self._fleet.served.space_of(model), request.adapter, salt)
        prompt = request.prompt
        ids = await off(partial(self._chains.chain, root, prompt))
        ask = Ask(
            model=model,
            prompt_tokens=len(prompt) // BYTES_A_TOKEN or 1,
            blocks=dict.fromkeys(keys, ids),
            session=request.session or conversation_by_ids(root, ids, prompt),
            tenant=caller.tenant,
            priority=request.priority,
            fingerprint=fingerprint_by_ids(root, ids, prompt),
            only=None if before is None else self._holder(before, model, caller),
        )
        return Question(ask, stores=request.stores)

    async def read_own(self, path: bytes, body: bytes, caller: Caller = ANYONE) -> Question:
        """After what has to be waited for: a large body, the prompt's tokens, other processes.

        Raises as `read`; WorkerFailed if no tokenizer could be had.
        """
        large = len(body) >= LARGE_BODY_BYTES
        if large and (question := await self._read_large(path, body, caller)):
            return question
        off = self._large.off_the_loop if large else _at_once
        values = await off(partial(read_large_object if large else decode_object, body))
        model = self._model_of(values.get("model"), caller)
        parse = _PARSERS.get(path)
        if parse is None:
            if self._stored.catch_up is not None:
                await self._stored.catch_up()
            if question := self.read(path, body, caller, caught_up=True):
                return question
            raise RequestError(
                f"{path.decode()} is passed on to http:// workers; those of {model!r:.200} are"
                f" radixgate's own and have: {', '.join(sorted(map(bytes.decode, _PARSERS)))}",
                code="unsupported_endpoint",
            )
        generation = await off(partial(parse, values))
        if caller.salted:
            generation = replace(generation, salt=_salt(caller, generation.salt))
        first = generation.prompts[0].routing_bytes()
        keys = self._fleet.mirrors_of(model)
        by_tokens = [key for key in keys if key.unit != BYTES]
        by_bytes = [key for key in keys if key.unit == BYTES]
        prompt, blocks = await self._prompts.read(model, generation, by_tokens)
        ask = Ask(
            model=model,
            prompt_tokens=prompt.total,
            blocks={**self._byte_blocks(by_bytes, model, generation.salt, first), **blocks},
            session=generation.session or conversation_of(first),
            tenant=caller.tenant,
            priority=generation.priority,
            fingerprint=xxh3_64_intdigest(first),
        )
        return Question(ask, generation, prompt)

    async def salted(self, body: bytes, caller: Caller) -> bytes:
        """As `salted_body`, off the loop where it takes long."""
        if len(body) < LARGE_BODY_BYTES:
            return salted_body(body, caller)
        return await self._large.off_the_loop(partial(salted_body, body, caller))

    def _byte_blocks(
        self, keys: Sequence[MirrorKey], model: str, salt: str | None, prompt: bytes
    ) -> Blocks:
        if not keys:
            return {}
        root = self._root_of(self._fleet.served.space_of(model), None, salt)
        return dict.fromkeys(keys, self._chains.chain(root, prompt))

    def _has_own(self, model: str) -> bool:
        return any(key.unit != BYTES for key in self._fleet.mirrors_of(model))

    def _model_of(self, name: object, caller: Caller) -> str:
        """The model to route by. Raises as `asked_model`."""
        return asked_model(name, caller, self._fleet.served, self._unheard_of)


async def _at_once(make: Callable[[], T]) -> T:
    return make()


def _salt(caller: Caller, given: str | None) -> str | None:
    return caller.salt((given or "").encode()) or given


def _check_adapters(named: object, caller: Caller) -> None:
    """What SGLang reads beside the model opens no more than the key does. Raises UnknownModel."""
    for one in named if isinstance(named, list) else [named]:
        if isinstance(one, str) and one and one not in caller.models_of({one}):
            raise UnknownModel(one, caller.models or ())
