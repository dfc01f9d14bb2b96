"""From a request's JSON to what the fleet is asked: model, prompt, and the prompt's block ids."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
from xxhash import xxh3_64_intdigest

from radixgate.errors import NoWorkerAvailable, RequestError
from radixgate.fleet.fleet import Ask, Fleet, MirrorKey
from radixgate.gateway.asking.foreign_request import ForeignRequest, read_foreign
from radixgate.gateway.asking.known_bodies import LEAST_BODY_BYTES, Hole, KnownBodies
from radixgate.gateway.asking.known_chains import (
    KnownChains,
    conversation_by_ids,
    fingerprint_by_ids,
)
from radixgate.gateway.asking.known_settings import KnownSettings
from radixgate.gateway.asking.large_bodies import (
    LARGE_BODY_BYTES,
    LargeBodies,
    read_large,
    read_large_object,
)
from radixgate.gateway.asking.prompt_place import BYTES, Place, Places, salt_of
from radixgate.gateway.asking.salted_body import salted_body
from radixgate.gateway.asking.stored_responses import StoredResponses
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.gateway.attempt.caller import ANYONE, Caller
from radixgate.proto.blocks import BYTES_A_TOKEN
from radixgate.proto.fields import decode_object
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.routing_text import conversation_of

Body = Mapping[str, object]
Blocks = Mapping[MirrorKey, Sequence[int]]

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
        self._served = fleet.served
        self._places = Places(fleet, unheard_of)
        self._unheard_of = unheard_of
        self._stored = stored
        self._prompts = prompts
        self._bodies = KnownBodies()
        self._large = LargeBodies()
        self._chains = KnownChains()
        self._settings = KnownSettings()

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
        if self._served.all_ours and path in _PARSERS and caller.models is None:
            return None  # that nobody else serves it need not be read out of it
        try:
            if len(body) < LEAST_BODY_BYTES:
                request = read_foreign(path, body)
            else:
                owner = caller.tenant if caller.salted else None
                request, hole = self._bodies.read(path, body, owner or "")
        except RequestError:
            # The parser for our own workers has the last word about what is for them.
            model = decode_object(body).get("model")
            if self._places.are_ours(model, caller, alone=path not in _PARSERS):
                return None
            raise
        place = self._places.of(request, caller, ours=path in _PARSERS)
        if place is None:
            return None
        before = request.goes_on_from
        if before is not None and not caught_up and self._stored.may_come(before):
            return None
        # A long prompt is hashed once: all that names it is made of its blocks' ids.
        if hole is not None:
            request, ids, hole = self._around(place.root, path, body, request, hole)
        else:
            ids = self._chains.chain(place.root, request.prompt)
        return self._question(request, caller, place, ids, hole)

    def _question(
        self,
        request: ForeignRequest,
        caller: Caller,
        place: Place,
        ids: "array[int]",
        hole: Hole | None = None,
    ) -> Question:
        """`ids` are those of the prompt, which lacks the hole. Raises UnknownResponse."""
        model, root, prompt = place.model, place.root, request.prompt
        left_out = 0 if hole is None else hole.size
        before = request.goes_on_from
        ask = Ask(
            model=model,
            prompt_tokens=(len(prompt) + left_out) // BYTES_A_TOKEN or 1,
            blocks=dict.fromkeys(place.keys, ids),
            session=request.session or conversation_by_ids(root, ids, prompt, hole),
            tenant=caller.tenant,
            priority=request.priority,
            fingerprint=fingerprint_by_ids(root, ids, prompt, left_out),
            only=None if before is None else self._holder(before, model, caller),
            adapters=place.adapters,
            foreign=True,
        )
        return Question(ask, stores=request.stores)

    def _holder(self, response_id: str, model: str, caller: Caller) -> str | None:
        """Who has stored it; None: nobody known who is here and serves the model.

        Raises UnknownResponse if it is another tenant's.
        """
        name = self._stored.worker_of(response_id, caller.tenant)
        record = None if name is None else self._fleet.record(name)
        return name if record is not None and record.identity.serves(model) else None

    def _around(
        self, root: int, path: bytes, body: bytes, request: ForeignRequest, hole: Hole
    ) -> tuple[ForeignRequest, "array[int]", Hole | None]:
        """The ids of the whole prompt, of which the request's lacks the hole. Without a hole the
        prompt is whole, as the ids were not known under this root."""
        ids = self._chains.around(root, request.prompt, hole)
        if ids is not None:
            return request, ids, hole
        request = read_foreign(path, body)
        ids = self._chains.chain(root, request.prompt)
        self._chains.keep(root, ids, hole)
        return request, ids, None

    async def _read_large(self, path: bytes, body: bytes, caller: Caller) -> Question | None:
        """As `read`; None: only if workers of ours serve the model."""
        off = self._large.off_the_loop
        try:
            request = await off(partial(read_large, path, body))
        except RequestError:
            values = await off(partial(read_large_object, body))
            if self._places.are_ours(values.get("model"), caller, alone=path not in _PARSERS):
                return None
            raise
        before = request.goes_on_from
        if before is not None and self._stored.may_come(before) and self._stored.catch_up:
            await self._stored.catch_up()
        ours = path in _PARSERS
        place = self._places.of(request, caller, ours=ours)
        while place is not None:
            ids = await off(partial(self._chains.chain, place.root, request.prompt))
            # Workers come, go and rename themselves meanwhile.
            hashed, place = place.root, self._places.of(request, caller, ours=ours)
            if place is not None and place.root == hashed:
                return self._question(request, caller, place, ids)
        return None

    async def read_own(self, path: bytes, body: bytes, caller: Caller = ANYONE) -> Question:
        """After what has to be waited for: a large body, the prompt's tokens, other processes.

        Raises as `read`; WorkerFailed if no tokenizer could be had.
        """
        large = len(body) >= LARGE_BODY_BYTES
        if large and (question := await self._read_large(path, body, caller)):
            return question
        off = self._large.off_the_loop
        values = await off(partial(read_large_object, body)) if large else decode_object(body)
        model, adapter = self._places.asked(values.get("model"), caller)
        parse = _PARSERS.get(path)
        if parse is None:
            if self._stored.catch_up is not None:
                await self._stored.catch_up()
            if question := self.read(path, body, caller, caught_up=True):
                return question
            if late := self._unheard_of():
                raise NoWorkerAvailable(
                    f"workers of {model!r:.200} have no {path.decode()} so far, and of {late} it is"
                    " not known yet what they serve"
                )
            raise RequestError(
                f"{path.decode()} is passed on to http:// workers; those of {model!r:.200} are"
                f" radixgate's own and have: {', '.join(sorted(map(bytes.decode, _PARSERS)))}",
                code="unsupported_endpoint",
            )
        if large:
            generation = await off(partial(parse, values))
        elif parse is parse_chat:
            generation = self._settings.parse_chat(values)
        else:
            generation = parse(values)
        if caller.salted:
            salt = salt_of(caller, generation.salt)
            generation = msgspec.structs.replace(generation, salt=salt)
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
            adapters=() if adapter is None else (adapter,),
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
        root = self._places.root(model, salt)
        return dict.fromkeys(keys, self._chains.chain(root, prompt))
