"""What our users may ask for and is not built: refused by its name, as silence would be wrong.

The names are SGLang's, vLLM's and OpenAI's own older ones.
"""

from collections.abc import Collection, Mapping

from radixgate.proto.fields import Fields

_NOT_YET = "is not supported yet"
_UNCONSTRAINED = "is not supported yet: output cannot be constrained"

# Of sampling: whatever is given with them.
CONSTRAINTS: Mapping[str, str] = dict.fromkeys(
    (
        "regex",
        "ebnf",
        "json_schema",
        "structural_tag",
        "structured_outputs",
        "guided_json",
        "guided_regex",
        "guided_choice",
        "guided_grammar",
        "allowed_token_ids",
        "bad_words",
        "stop_regex",
    ),
    _UNCONSTRAINED,
)
# OpenAI's spelling where SGLang's is expected.
_NOT_NATIVE: Mapping[str, str] = {
    "max_tokens": "is max_new_tokens here",
    "max_completion_tokens": "is max_new_tokens here",
    "min_tokens": "is min_new_tokens here",
}
# Those below where they ask for something. Of both OpenAI bodies:
OPENAI: Mapping[str, str] = dict.fromkeys(
    (
        "use_beam_search",
        "custom_logit_processor",
        "logits_processors",
        "prompt_embeds",
        "prompt_logprobs",
        "return_hidden_states",
        "return_token_ids",
        "truncate_prompt_tokens",
    ),
    _NOT_YET,
)
CHAT: Mapping[str, str] = {
    **OPENAI,
    "add_special_tokens": "is not supported: the chat template writes its own",
    "audio": "is not supported: only text is",
    "chat_template": "is not supported: the model's own is used",
    "continue_final_message": "is not supported yet: every answer is a message of its own",
    "documents": "is not supported yet: write them into a message",
    "echo": "is not supported: only /v1/completions has it",
    "functions": "is not supported: give tools",
}
NATIVE: Mapping[str, str] = dict.fromkeys(
    (
        "input_embeds",
        "image_data",
        "video_data",
        "audio_data",
        "custom_logit_processor",
        "session_params",
        "lora_path",
        "max_thinking_tokens",
        "return_entropy",
        "return_hidden_states",
        "return_prompt_token_ids",
        "return_routed_experts",
    ),
    _NOT_YET,
)


def refuse_constraints(fields: Fields) -> None:
    """Raises RequestError naming the first that is given."""
    if fields.has_none(CONSTRAINTS):
        return
    for name, why in CONSTRAINTS.items():
        if fields.raw(name) is not None:
            raise fields.refuse(name, why)


def refuse_unsupported(fields: Fields, names: Mapping[str, str]) -> None:
    """Raises RequestError naming the first that asks for something."""
    if fields.has_none(names):
        return
    for name, why in names.items():
        if _asks(fields.raw(name)):
            raise fields.refuse(name, why)


def refuse_unknown(params: Fields, known: Collection[str]) -> None:
    """Of SGLang's `sampling_params`, where a name that is mistyped is refused, too: passed over it
    would change what comes, and nobody would know. Raises RequestError naming the first."""
    for name in params.beyond(known):
        why = _NOT_NATIVE.get(name, f"is not known; there are {', '.join(sorted(known))}")
        raise params.refuse(name, why)


def _asks(value: object) -> bool:
    """Null, false and what is empty do not; nor does an array of such, one for each of a batch."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif one is not None and one is not False and one != "" and one != {}:
            return True
    return False
