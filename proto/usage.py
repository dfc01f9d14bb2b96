"""Adding up the token counts of one answer."""

from radixgate.proto.generated import worker_pb2 as pb


class UsageSum:
    """Prompt tokens count once a prompt, completion tokens once a choice."""

    def __init__(self) -> None:
        self._prompts: dict[int, pb.Counts] = {}
        self._completion: dict[tuple[int, int], int] = {}

    def add(self, prompt: int, item: pb.Item) -> None:
        if not item.HasField("counts"):
            return
        # A fork of the same prompt finds it all cached; the first choice tells what it cost.
        if item.choice == 0 or prompt not in self._prompts:
            self._prompts[prompt] = item.counts
        self._completion[prompt, item.choice] = item.counts.completion

    @property
    def prompt_tokens(self) -> int:
        return sum(counts.prompt for counts in self._prompts.values())

    @property
    def cached_tokens(self) -> int:
        return sum(map(cached_tokens, self._prompts.values()))

    @property
    def completion_tokens(self) -> int:
        return sum(self._completion.values())

    def openai(self, *, report_cached: bool = True) -> dict[str, object]:
        """The `usage` object."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        usage: dict[str, object] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        if report_cached:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        return usage


def cached_tokens(counts: pb.Counts) -> int:
    """Prompt tokens that were not computed, whatever tier they came from."""
    return counts.cached_device + counts.cached_host + counts.cached_storage
