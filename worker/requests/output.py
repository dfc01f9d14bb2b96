"""One choice's tokens become text, and its end is recognised."""

from array import array
from dataclasses import dataclass

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.sampling import SamplingParams
from radixgate.text.detokenizer import Detokenizer
from radixgate.text.stop_strings import StopStrings
from radixgate.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class End:
    """Why a choice ended, as it goes on the wire."""

    reason: "pb.Finish.Reason"
    token_id: int | None = None  # the token that ended it; None: another reason
    stop: str | None = None  # the stop string that ended it; None: another reason
    message: str = ""  # with ABORT: why
    status: int | None = None  # with ABORT: the worker failed; None: nobody did

    def to_wire(self) -> pb.Finish:
        finish = pb.Finish(reason=self.reason, message=self.message)
        if self.token_id is not None:
            finish.token_id = self.token_id
        if self.stop is not None:
            finish.stop = self.stop
        if self.status is not None:
            finish.status = self.status
        return finish


LENGTH = End(pb.Finish.LENGTH)


class OutputText:
    """Text of one choice: whole characters, nothing that may still become a stop string.

    A token that ends the output (end of sequence, stop token) is reported but adds no text, and
    neither does a stop string, unless `no_stop_trim` asks for them.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None,
        sampling: SamplingParams,
        stop_ids: frozenset[int],
        *,
        return_text: bool,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop_ids = stop_ids
        self._trim = not sampling.no_stop_trim
        self._skip_special = sampling.skip_special_tokens
        self._return_text = return_text
        # Without text to return, tokens become text only to find stop strings in it.
        self._needs_text = tokenizer is not None and (return_text or bool(sampling.stop))
        self._stops = StopStrings(sampling.stop) if sampling.stop else None
        self._detokenizer: Detokenizer | None = None

    def begin(self, prompt: "array[int]", prior: "array[int]") -> End | None:
        """Stand where the worker stood that delivered `prior`. An End if that was the end.

        The text of `prior` is out already, but for what was held back.
        """
        if self._needs_text and self._tokenizer is not None:
            self._detokenizer = Detokenizer(
                self._tokenizer,
                self._skip_special,
                prompt_ids=prompt,
                prior_output_ids=() if self._stops else prior,
            )
            if self._stops:
                for token_id in prior:
                    _, end = self.push(token_id)
                    if end is not None:
                        return end
        if prior and prior[-1] in self._stop_ids:
            return End(pb.Finish.STOP, token_id=prior[-1])
        return None

    def push(self, token_id: int) -> tuple[str, End | None]:
        """The text that comes out with this token, and whether the output ends with it."""
        stopped = token_id in self._stop_ids
        text, stop = "", None
        if not (stopped and self._trim):
            text, stop = self._show(token_id)
        if stopped:
            return text + self._rest(), End(pb.Finish.STOP, token_id=token_id)
        if stop is not None:
            return text, End(pb.Finish.STOP, stop=stop)
        return text, None

    def finish(self) -> str:
        """What was held back, when the output ends for another reason than `push` gave."""
        return self._rest()

    def _show(self, token_id: int) -> tuple[str, str | None]:
        if self._detokenizer is None:
            return "", None
        text, stop = self._detokenizer.push(token_id), None
        if self._stops is not None:
            text, stop = self._stops.push(text)
            if stop is not None and not self._trim:
                text += stop
        return (text if self._return_text else ""), stop

    def _rest(self) -> str:
        if self._detokenizer is None:
            return ""
        text = self._detokenizer.flush()
        if self._stops is not None:
            shown, stop = self._stops.push(text)
            text = shown if stop is not None else shown + self._stops.flush()
        return text if self._return_text else ""
