import json
from collections.abc import Sequence

import pytest
import tokenizers
import torch

from paged_world import PagedWorld
from radixgate.text.chat_template import ChatTemplate
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.reference import reference_greedy, reference_logits
from radixgate.worker.weights.toy import (
    CHAT_TEMPLATE,
    END_OF_TEXT_ID,
    IM_END_ID,
    IM_START_ID,
    toy_config,
    toy_tensors,
    toy_tokenizer_bundle,
)

CONFIG = toy_config()
TENSORS = toy_tensors(CONFIG)
BUNDLE = json.loads(toy_tokenizer_bundle())


def text(length: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(32, 127, (length,), generator=generator).tolist()


def gaps(ids: Sequence[int]) -> torch.Tensor:
    """How far the best logit is above the second, after every token."""
    best = reference_logits(CONFIG, TENSORS, ids).topk(2, dim=-1).values
    return best[:, 0] - best[:, 1]


def test_the_best_token_stands_apart() -> None:
    apart = torch.cat([gaps(text(300, seed=seed)) for seed in range(6)])
    assert (apart > 1e-2).float().mean() > 0.997


def test_paged_and_plain_forward_write_the_same() -> None:
    prompt = text(60)
    world = PagedWorld(CONFIG, TENSORS, TorchAttention, page_size=16)
    sequence = world.begin(prompt)
    world.step([(sequence, 37)])
    assert world.greedy(sequence, 12) == reference_greedy(CONFIG, TENSORS, prompt, 12)


@pytest.mark.parametrize("place", [0, 100, 199])
def test_every_token_of_the_prompt_matters(place: int) -> None:
    prompt = text(200)
    changed = [*prompt[:place], (prompt[place] + 1) % 128, *prompt[place + 1 :]]
    assert written(prompt) != written(changed)


def test_it_does_not_repeat_itself() -> None:
    assert len(set(written(text(40)))) > 12


def test_it_seldom_ends_by_itself_and_writes_only_tokens_it_can_decode() -> None:
    logits = torch.cat([reference_logits(CONFIG, TENSORS, text(300, seed=s)) for s in range(4)])
    best = logits.argmax(dim=-1)
    assert not (best > IM_END_ID).any()
    assert (best >= END_OF_TEXT_ID).float().mean() < 0.002


def test_the_weights_are_the_same_each_time() -> None:
    again = toy_tensors(CONFIG)
    assert all(torch.equal(tensor, again[name]) for name, tensor in TENSORS.items())


def test_a_byte_is_its_own_id() -> None:
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(BUNDLE["tokenizer"]))
    for sample in ("plain text", " ñ\r\n\t 漢字 🙂 don't", "\x00\x7f\u00ff", "a" * 50):
        encoding = tokenizer.encode(sample)
        assert encoding.ids == list(sample.encode())
        assert tokenizer.decode(encoding.ids) == sample


def test_special_tokens_end_an_answer_or_frame_a_message() -> None:
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(BUNDLE["tokenizer"]))
    ids = tokenizer.encode("<|im_start|>a<|im_end|><|endoftext|>").ids
    assert ids == [IM_START_ID, ord("a"), IM_END_ID, END_OF_TEXT_ID]
    assert BUNDLE["eos_token_ids"] == [END_OF_TEXT_ID, IM_END_ID]
    assert tokenizer.get_vocab_size() <= CONFIG.vocab_size


def test_the_template_is_chatml() -> None:
    rendered = ChatTemplate(CHAT_TEMPLATE, None, "<|im_end|>").render(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    )
    assert rendered == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def written(prompt: Sequence[int]) -> list[int]:
    """The 24 tokens after the prompt."""
    world = PagedWorld(CONFIG, TENSORS, TorchAttention, page_size=16)
    return world.greedy(world.begin(prompt), 24)
