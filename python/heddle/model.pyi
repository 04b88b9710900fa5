# Written by python/tools/make_stubs.py from the settings of answers and engines; do not edit.
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Literal, overload

@dataclass(slots=True)
class Token:
    text: str
    id: int
    index: int
    logprob: float | None
    finish_reason: Literal["eos", "stop", "length", "context"] | None
    top: tuple[tuple[int, float], ...] | None
    reasoning: str

class Logits:
    @property
    def shape(self) -> tuple[int, int]: ...
    def __dlpack__(self, **keywords: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Model:
    @overload
    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        reuse: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        top_h: float | None = None,
        epsilon_cutoff: float | None = None,
        eta_cutoff: float | None = None,
        encoder_repetition_penalty: float | None = None,
        encoder_no_repeat_ngram_size: int | None = None,
        min_length: int | None = None,
        min_new_tokens: int | None = None,
        forced_bos_token_id: int | None = None,
        exponential_decay_start: int | None = None,
        exponential_decay_factor: float | None = None,
        seed: int | None = None,
        sequence_bias: Sequence[tuple[Sequence[int], float]] | None = None,
        bad_words_ids: Sequence[Sequence[int]] | None = None,
        suppress_tokens: int | Sequence[int] | None = None,
        begin_suppress_tokens: int | Sequence[int] | None = None,
        forced_eos_token_id: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        stop: str | Sequence[str] | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> str: ...
    @overload
    def generate(
        self,
        prompt: list[str] | tuple[str, ...] | list[list[int]] | tuple[list[int], ...],
        *,
        reuse: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        top_h: float | None = None,
        epsilon_cutoff: float | None = None,
        eta_cutoff: float | None = None,
        encoder_repetition_penalty: float | None = None,
        encoder_no_repeat_ngram_size: int | None = None,
        min_length: int | None = None,
        min_new_tokens: int | None = None,
        forced_bos_token_id: int | None = None,
        exponential_decay_start: int | None = None,
        exponential_decay_factor: float | None = None,
        seed: int | None = None,
        sequence_bias: Sequence[tuple[Sequence[int], float]] | None = None,
        bad_words_ids: Sequence[Sequence[int]] | None = None,
        suppress_tokens: int | Sequence[int] | None = None,
        begin_suppress_tokens: int | Sequence[int] | None = None,
        forced_eos_token_id: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        stop: str | Sequence[str] | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> list[str]: ...
    def stream(
        self,
        prompt: str | Sequence[int],
        *,
        reuse: bool = False,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        top_h: float | None = None,
        epsilon_cutoff: float | None = None,
        eta_cutoff: float | None = None,
        encoder_repetition_penalty: float | None = None,
        encoder_no_repeat_ngram_size: int | None = None,
        min_length: int | None = None,
        min_new_tokens: int | None = None,
        forced_bos_token_id: int | None = None,
        exponential_decay_start: int | None = None,
        exponential_decay_factor: float | None = None,
        seed: int | None = None,
        sequence_bias: Sequence[tuple[Sequence[int], float]] | None = None,
        bad_words_ids: Sequence[Sequence[int]] | None = None,
        suppress_tokens: int | Sequence[int] | None = None,
        begin_suppress_tokens: int | Sequence[int] | None = None,
        forced_eos_token_id: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        stop: str | Sequence[str] | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> Iterator[Token]: ...
    @overload
    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        stream: Literal[False] = False,
        template: str | PathLike[str] | None = None,
        variables: dict[str, Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        reuse: bool = True,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        top_h: float | None = None,
        epsilon_cutoff: float | None = None,
        eta_cutoff: float | None = None,
        encoder_repetition_penalty: float | None = None,
        encoder_no_repeat_ngram_size: int | None = None,
        min_length: int | None = None,
        min_new_tokens: int | None = None,
        forced_bos_token_id: int | None = None,
        exponential_decay_start: int | None = None,
        exponential_decay_factor: float | None = None,
        seed: int | None = None,
        sequence_bias: Sequence[tuple[Sequence[int], float]] | None = None,
        bad_words_ids: Sequence[Sequence[int]] | None = None,
        suppress_tokens: int | Sequence[int] | None = None,
        begin_suppress_tokens: int | Sequence[int] | None = None,
        forced_eos_token_id: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        stop: str | Sequence[str] | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> str: ...
    @overload
    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        stream: Literal[True],
        template: str | PathLike[str] | None = None,
        variables: dict[str, Any] | None = None,
        chat_template_kwargs: dict[str, Any] | None = None,
        reuse: bool = True,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float | None = None,
        no_repeat_ngram_size: int | None = None,
        top_h: float | None = None,
        epsilon_cutoff: float | None = None,
        eta_cutoff: float | None = None,
        encoder_repetition_penalty: float | None = None,
        encoder_no_repeat_ngram_size: int | None = None,
        min_length: int | None = None,
        min_new_tokens: int | None = None,
        forced_bos_token_id: int | None = None,
        exponential_decay_start: int | None = None,
        exponential_decay_factor: float | None = None,
        seed: int | None = None,
        sequence_bias: Sequence[tuple[Sequence[int], float]] | None = None,
        bad_words_ids: Sequence[Sequence[int]] | None = None,
        suppress_tokens: int | Sequence[int] | None = None,
        begin_suppress_tokens: int | Sequence[int] | None = None,
        forced_eos_token_id: int | Sequence[int] | None = None,
        max_tokens: int | None = None,
        logprobs: int | None = None,
        stop: str | Sequence[str] | None = None,
        eos_token_id: int | Sequence[int] | None = None,
    ) -> Iterator[Token]: ...
    @overload
    def logits(self, tokens: Sequence[int]) -> Any: ...
    @overload
    def logits(self, tokens: Sequence[Sequence[int]]) -> list[Any]: ...
    def tokenize(self, text: str, *, special: bool = True) -> list[int]: ...
    def detokenize(self, tokens: Sequence[int], *, skip_special: bool = False) -> str: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Model: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None: ...

def load(
    path: str | PathLike[str],
    *,
    device: str = "auto",
    ignore_generation: str | Sequence[str] = (),
    executor: str | None = None,
    scheduler: str | None = None,
    config: str | None = None,
    workers: int | None = None,
    threads: int | None = None,
    max_context: int | None = None,
    max_sequences: int | None = None,
    split_unit: int | None = None,
    max_splits: int | None = None,
) -> Model: ...
