"""transformers' experts_implementation="heddle": any class of experts that transformers lets choose one."""

from heddle.moe import ops, routes
from heddle.moe.layer import cast
from heddle.moe.products import unit_of

NAME = "heddle"
_ACTS = {"SiLU": "silu", "SiLUActivation": "silu", "GELUTanh": "gelu_tanh", "GELUActivation": "gelu"}


def _kind(experts):
    """The activation of a gate that is [gate, up] by halves, as heddle has it; None for others."""
    own = getattr(type(experts)._apply_gate, "__name__", "") != "_default_apply_gate"
    act = experts.act_fn if experts.has_gate and not own else None
    return _ACTS.get(type(act).__name__)


def _has_norm(experts):
    return getattr(experts, "has_post_expert_norm", False)  # transformers 5.17 says nothing of it


def why_composed(experts):
    """The reason why gate and sum are torch's and heddle's ops one by one, or "" where they are one op."""
    if not experts.has_gate:
        return "experts without a gate: the activation is torch's"
    if _kind(experts) is None:
        return "a gate of its own: it runs in torch"
    if experts.has_bias:
        return "experts with a bias"
    return "a norm after the experts" if _has_norm(experts) else ""


def experts_forward(experts, hidden_states, top_k_index, top_k_weights):
    """The forward of transformers' experts: hidden_states [T, H], top_k_index and top_k_weights [T, C]."""
    first = experts.gate_up_proj if experts.has_gate else experts.up_proj
    biases = (None, None)
    if experts.has_bias:
        biases = (
            experts.gate_up_proj_bias if experts.has_gate else experts.up_proj_bias,
            experts.down_proj_bias,
        )
    x, first, down, *biases = cast(hidden_states, first, experts.down_proj, *biases)
    x, transposed = x.contiguous(), experts.is_transposed
    shares = top_k_weights.float()
    choice, place, ends = routes.sort(top_k_index, len(first), unit_of(x))
    h = ops.LINEAR(x, first, biases[0], choice, place, ends, gathers=True, transposed=transposed)
    if not why_composed(experts):
        y = ops.GATED(h, down, shares, choice, place, ends, kind=_kind(experts), transposed=transposed)
        return y.to(hidden_states.dtype)
    h = experts._apply_gate(h) if experts.has_gate else experts.act_fn(h)
    rows = ops.LINEAR(
        h.contiguous(), down, biases[1], choice, place, ends, gathers=False, transposed=transposed
    )
    if _has_norm(experts):
        rows = experts.post_expert_norm(rows)
    return ops.SUM(rows.contiguous(), shares, choice, place).to(hidden_states.dtype)


def expert_paths(model):
    """Yields (name, class, path, reason, from which sizes it pays, calls) of experts, for heddle.explain."""
    for name, module in model.named_modules():
        if not hasattr(module, "_apply_gate") or not hasattr(module, "is_transposed"):
            continue
        chosen = module.config._experts_implementation
        path, reason = "heddle experts", why_composed(module)
        if chosen != NAME:
            path = f"torch: {chosen}"
            reason = f'import heddle.moe, then model.set_experts_implementation("{NAME}")'
        yield name, type(module).__qualname__, path, reason, "", None


def _register():
    try:
        from transformers.integrations.moe import ExpertsInterface
    except ImportError:  # no transformers, or one that lets nobody choose
        return
    ExpertsInterface.register(NAME, experts_forward)


_register()
