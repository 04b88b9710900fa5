"""transformers' attn_implementation="heddle_cp": attention inside of heddle.attention.context_parallel."""

from heddle.errors import InvalidArgument, Unsupported
from heddle.parallel.context import current

NAME = "heddle_cp"
_REFUSED = ("s_aux", "position_bias", "output_attentions", "head_mask", "cache")


def attend(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    sliding_window=None,
    softcap=None,
    **options,
):
    """The function of transformers' interface. `sliding_window`: how many keys a query sees, with its own."""
    parallel = current()
    if parallel is None:
        raise InvalidArgument(f'[attn_implementation="{NAME}"] is for calls inside of context_parallel')
    for name in _REFUSED:
        if options.get(name) is not None and options[name] is not False:
            raise Unsupported(
                f'[attn_implementation="{NAME}"] a call with {name}; "eager" on one rank takes it'
            )
    made = parallel.attend(
        query,
        key,
        value,
        attention_mask,
        dropout,
        getattr(module, "is_causal", True) if is_causal is None else is_causal,
        scaling,
        enable_gqa=True,
        window=None if sliding_window is None else (sliding_window - 1, -1),
        softcap=softcap or 0.0,
    )
    return made.transpose(1, 2), None


def mask(*sizes, attention_mask=None, **_):
    """No mask: a call says whether it is causal, and positions are not those of one sequence in order."""
    if attention_mask is not None and not attention_mask.all():
        raise Unsupported(
            f'[attn_implementation="{NAME}"] attention_mask has padding; pack the documents, and give'
            " context_parallel their cu_seqlens"
        )
