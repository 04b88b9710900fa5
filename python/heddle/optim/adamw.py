"""AdamW as torch has it, with a parameter's states in f32, bf16 or 8 bits."""

import math

import torch

from heddle.errors import InvalidArgument, Unsupported
from heddle.optim import states, update

REFUSED = ("amsgrad", "capturable", "differentiable")


def _checked(group):
    """Refuses a group's options by name, before anything changes."""
    lr, betas, eps, decay = (group[name] for name in ("lr", "betas", "eps", "weight_decay"))
    for name, value in (("lr", lr), ("eps", eps), ("weight_decay", decay)):
        if not (math.isfinite(float(value)) and float(value) >= 0):
            raise InvalidArgument(f"[heddle.optim] {name} = {value}; must be a number, 0 or more")
    if len(betas) != 2 or not all(0 <= float(beta) < 1 for beta in betas):
        raise InvalidArgument(f"[heddle.optim] betas = {betas}; must be two numbers, 0 or more and below 1")
    for name in REFUSED:
        if group.get(name):
            raise Unsupported(f"[heddle.optim] {name}=True is not supported; must be False")
    if group.get("foreach") and group.get("fused"):
        raise InvalidArgument("[heddle.optim] foreach and fused are both True; at most one may be")
    for number, param in enumerate(group["params"]):
        if param.dtype not in (torch.float32, torch.bfloat16):
            raise Unsupported(
                f"[heddle.optim] parameter {number} is {param.dtype}; must be torch.float32 or torch.bfloat16"
            )
        if not states.is_dense(param):
            raise Unsupported(
                f"[heddle.optim] parameter {number} has strides {param.stride()} for sizes "
                f"{tuple(param.shape)}; its elements must lie side by side"
            )


def _given(group, numbers):
    """(number, parameter, gradient) of those that have a gradient."""
    _checked(group)
    given = []
    for param in group["params"]:
        grad = param.grad
        if grad is None:
            continue
        if grad.layout != torch.strided:
            raise Unsupported(
                f"[heddle.optim] the gradient of parameter {numbers[param]} is sparse ({grad.layout}); "
                "must be dense: torch.optim.SparseAdam takes it"
            )
        given.append((numbers[param], param, grad))
    return given


class AdamW(torch.optim.Optimizer):
    """`torch.optim.AdamW` with the update in one pass over all tensors. Means are in f32. A bf16 parameter
    has a residual of 16 bits, which makes an f32 of it: small updates are not lost, for 2 bytes each.

    `foreach` and `fused` are taken and change nothing. `amsgrad`, `capturable` and `differentiable` are
    refused. `max_grad_norm` clips as `torch.nn.utils.clip_grad_norm_` does, and leaves the gradients as they
    are. With `skip_nonfinite` a step whose gradients have an infinity or NaN changes nothing and counts in
    `skipped_steps`; without, they spread as in torch.

    A step that is refused (sparse gradients) leaves all parameters as they were. `state_dict` has torch's
    names; `adamw_state_dict` is what torch's AdamW loads, and `load_state_dict` takes that too."""

    state_dtype = "fp32"
    offloads = False
    _options = ("max_grad_norm", "skip_nonfinite", "skipped_steps")  # which a copy has too

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
        max_grad_norm=None,
        skip_nonfinite=False,
    ):
        if max_grad_norm is not None and not max_grad_norm > 0:
            raise InvalidArgument(f"[heddle.optim] max_grad_norm = {max_grad_norm}; must be above 0")
        self.max_grad_norm, self.skip_nonfinite, self.skipped_steps = max_grad_norm, skip_nonfinite, 0
        defaults = {
            **{"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad},
            **{"maximize": maximize, "foreach": foreach, "capturable": capturable},
            **{"differentiable": differentiable, "fused": fused, "decoupled_weight_decay": True},
        }
        super().__init__(params, defaults)

    def __getstate__(self):
        return {**super().__getstate__(), **{name: getattr(self, name) for name in self._options}}

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        try:
            _checked(self.param_groups[-1])
        except Exception:
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure=None):
        """One step; the loss of `closure`, which is called before with gradients on."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        params = (param for group in self.param_groups for param in group["params"])
        numbers = {param: number for number, param in enumerate(params)}
        work = [(group, _given(group, numbers)) for group in self.param_groups]
        scale = self._scale([grad for _, given in work for _, _, grad in given])
        if scale is None:
            self.skipped_steps += 1
            return loss
        for _, given in work:
            for _, param, _ in given:
                if not self.state[param]:
                    self.state[param] = self._new_state(param)
        for group, given in work:
            by_step = {}
            for number, param, grad in given:
                self.state[param]["step"] += 1
                step = int(self.state[param]["step"])
                by_step.setdefault(step, []).append(self._part(number, param, grad, step))
            for step, parts in by_step.items():
                self._update(parts, self._numbers(group, scale, step))
        return loss

    def _scale(self, grads):
        """The factor of all gradients; None: the step is skipped."""
        if not grads:
            return 1.0
        if self.skip_nonfinite:
            largest = torch._foreach_norm(grads, float("inf"))
            if not all(bool(each.isfinite()) for each in largest):
                return None
        if self.max_grad_norm is None:
            return 1.0
        norm = float(torch.nn.utils.get_total_norm(grads))
        return min(1.0, self.max_grad_norm / (norm + 1e-6)) if norm == norm else norm

    def _numbers(self, group, scale, step):
        beta1, beta2 = map(float, group["betas"])
        return update.Numbers(
            **{name: float(group[name]) for name in ("lr", "eps", "weight_decay")},
            **{"beta1": beta1, "beta2": beta2, "step": step},
            grad_scale=-scale if group["maximize"] else scale,
        )

    def _new_state(self, param):
        device = torch.device("cpu") if self.offloads else param.device
        pin = self.offloads and param.device.type == "cuda"
        return states.new(param, states.dtype_of(self.state_dtype, param), device, pin)

    def _part(self, number, param, grad, step):
        if grad.dtype not in (torch.float32, torch.bfloat16):
            grad = grad.float()
        if grad.stride() != param.stride():
            grad = torch.empty_strided(
                param.shape, param.stride(), dtype=grad.dtype, device=grad.device
            ).copy_(grad)
        state = {name: each for name, each in self.state[param].items() if name != "step"}
        return update.Part(param.detach(), grad, state, 0, states.seed_of(number, step))

    def _update(self, parts, numbers):
        update.on_host([part for part in parts if part.param.device.type == "cpu"], numbers)
        update.on_device([part for part in parts if part.param.device.type != "cpu"], numbers)

    def load_state_dict(self, state_dict):
        """Takes what `state_dict` or `adamw_state_dict` gave, of any of heddle's AdamWs or of torch's. States
        are stored in this optimizer's kind; those of its own keep all bits. Hooks see no states."""
        groups, saved_groups = self.param_groups, state_dict["param_groups"]
        if [len(each["params"]) for each in groups] != [len(each["params"]) for each in saved_groups]:
            raise InvalidArgument(
                "[heddle.optim] the saved groups have other numbers of parameters; must be "
                f"{[len(each['params']) for each in groups]}"
            )
        made = {}
        for group, saved_group in zip(groups, saved_groups, strict=True):
            _checked({**group, **saved_group, "params": group["params"]})
            for param, name in zip(group["params"], saved_group["params"], strict=True):
                saved = state_dict["state"].get(name)
                if saved:
                    made[param] = states.taken(param, saved, self._new_state(param))
        super().load_state_dict({**state_dict, "state": {}})
        self.state.update(made)

    def adamw_state_dict(self):
        """`state_dict` for torch.optim.AdamW: means in f32, and nothing that it does not have."""
        saved = self.state_dict()
        for name, state in saved["state"].items():
            plain = {"step": state["step"]}
            for mean, signed in states.MEANS.items():
                wide = states.widened(states.flat(state[mean]), state.get(f"{mean}_scale"), signed)
                plain[mean] = wide.as_strided(state[mean].shape, state[mean].stride())
            saved["state"][name] = plain
        return saved


class AdamW8bit(AdamW):
    """AdamW whose means take 8 bits each: codes of bitsandbytes' and torchao's dynamic code, with a scale in
    f32 for each 256 elements. Parameters of fewer than 4096 elements have theirs in f32."""

    state_dtype = "int8"
