"""Steps that leave everything as it is where a gradient is not finite."""

import enum

import torch

from heddle.errors import InvalidArgument, Unsupported, named, named_class
from heddle.float8.config import Float8Config
from heddle.float8.convert import convert_to_float8_training
from heddle.float8.linear import Float8Linear


def step_if_finite(optimizer):
    """optimizer.step() where all gradients are finite: True. Else False: parameters and states stay as they
    were, and gradients too, for whoever wants to look. Waits for the device."""
    grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    grads = [grad.coalesce().values() if grad.is_sparse else grad for grad in grads]
    by_device = {}
    for grad in grads:
        by_device.setdefault(grad.device, []).append(grad)
    for each in by_device.values():
        most = torch._foreach_norm(each, float("inf"))
        if not bool(torch.stack([one.float() for one in most]).isfinite().all()):
            return False
    optimizer.step()
    return True


@named_class
class Float8Trainer:
    """A model's steps: `training_step` runs forward, loss and backward; `optimizer_step` updates, or skips.

    loss(outputs, targets): unless given, cross-entropy over the last dimension for whole numbers, else the
    mean of squares.
    """

    def __init__(self, model, loss=None):
        self.model, self.loss, self.skipped = model, loss or _cross_entropy, 0

    def __enter__(self):
        self.model.train()
        return self

    def __exit__(self, *error):
        return None

    def training_step(self, inputs, targets):
        """The loss, detached; gradients add up in the parameters."""
        loss = self.loss(self.model(inputs), targets)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InvalidArgument("[training_step] loss(outputs, targets) must return one number as a tensor")
        loss.backward()
        return loss.detach()

    def optimizer_step(self, optimizer):
        """True where the step was made, False where a gradient was not finite and nothing was touched.
        Gradients are set to None either way."""
        made = step_if_finite(optimizer)
        self.skipped += not made
        optimizer.zero_grad(set_to_none=True)
        return made


def _cross_entropy(outputs, targets):
    if targets.is_floating_point():
        return torch.nn.functional.mse_loss(outputs, targets)
    return torch.nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())


class FP8Format(enum.Enum):
    """Codes of 8 bits; HYBRID: E4M3, and E5M2 for gradients."""

    E4M3 = "e4m3"
    E5M2 = "e5m2"
    HYBRID = "hybrid"


def _config(forward_format, backward_format):
    if forward_format not in (FP8Format.E4M3, FP8Format.HYBRID):
        raise Unsupported(f"[create_fp8_trainer] forward_format is {forward_format}; must be E4M3 or HYBRID")
    e4m3 = backward_format is FP8Format.E4M3 and forward_format is FP8Format.E4M3
    return Float8Config(gradients="e4m3" if e4m3 else "e5m2")


@named
def convert_model_to_fp8(model, forward_format=FP8Format.E4M3, backward_format=FP8Format.E5M2):
    """convert_to_float8_training with blocks, and gradients in E5M2 unless both formats are E4M3."""
    return convert_to_float8_training(model, config=_config(forward_format, backward_format))


@named
def create_fp8_trainer(model, forward_format=FP8Format.E4M3, backward_format=FP8Format.E5M2, *, loss=None):
    """A Float8Trainer of a model, which is converted unless it was."""
    if not any(isinstance(module, Float8Linear) for module in model.modules()):
        convert_model_to_fp8(model, forward_format, backward_format)
    return Float8Trainer(model, loss)
