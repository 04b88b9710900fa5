"""The loss of a causal language model: transformers asks the model for its function."""

import torch

import heddle.ops
from heddle.patching import classes, fits
from heddle.patching.logits import HEAD, LEAST, Deferred, head_of, made
from heddle.torch.linear_loss import linear_cross_entropy

NAME = "_loss_function"  # in the model
PATH, OTHERWISE = "heddle cross_entropy", "torch"
LINEAR = HEAD.path  # without the logits


class Loss:
    """Stands in for ForCausalLMLoss. Calls are counted by path and reason, which is empty where heddle ran.

    `with_logits`: why no loss of the model is made without its logits, or ""."""

    least = LEAST

    def __init__(self, own, with_logits):
        self.own = own
        self.with_logits = with_logits
        self.calls = {}

    def _reason(self, logits, labels):
        if type(labels) is not torch.Tensor or labels.dtype not in (torch.int64, torch.int32):
            return "the labels are no whole numbers"
        if logits.is_cpu and logits.numel() < self.least:
            return "torch is as fast for so few logits"
        return fits.tensors(logits) or (fits.IN_TRANSFORM if fits.transformed() else "")

    def __call__(
        self,
        logits,
        labels,
        vocab_size,
        num_items_in_batch=None,
        ignore_index=-100,
        shift_labels=None,
        **others,
    ):
        if not torch.compiler.is_compiling():
            operands = _operands(logits, labels if shift_labels is None else shift_labels, vocab_size)
            if operands:
                self._count(LINEAR)
                target, items = _target(labels, ignore_index, shift_labels), num_items_in_batch
                return _linear_loss(*operands, target.reshape(-1), items, ignore_index)
            logits = made(logits)
            reason = self._reason(logits, labels if shift_labels is None else shift_labels)
            self._count(OTHERWISE if reason else PATH, reason)
            if not reason:
                return _loss(logits, labels, vocab_size, num_items_in_batch, ignore_index, shift_labels)
        given = {"num_items_in_batch": num_items_in_batch, "ignore_index": ignore_index}
        return self.own(logits, labels, vocab_size, shift_labels=shift_labels, **given, **others)

    def _count(self, path, reason=""):
        self.calls[path, reason] = self.calls.get((path, reason), 0) + 1


def _operands(logits, labels, vocab_size):
    """(x, weight, softcap) where the loss needs no logits, or None."""
    if not isinstance(logits, Deferred) or logits.is_made:
        return None
    is_like = type(labels) is torch.Tensor and labels.dtype in (torch.int64, torch.int32)
    if not is_like or labels.shape != logits.shape[:-1] or logits.shape[-1] != vocab_size:
        return None
    return logits.operands()


def _target(labels, ignore_index, shift_labels):
    """The token after each one; the last has none."""
    if shift_labels is None:
        return torch.nn.functional.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    return shift_labels


def _linear_loss(x, weight, softcap, target, items, ignore_index):
    """As _loss of x @ weight.T."""
    target, x = target.to(x.device), x.reshape(-1, x.shape[-1])
    counted = target != ignore_index
    items = counted.sum() if items is None else items
    if x.is_cpu and not counted.all():  # a GPU would wait for the count
        target, x = target[counted], x[counted]
    options = {"ignore_index": ignore_index, "softcap": softcap, "reduction": "sum"}
    loss = linear_cross_entropy(x, weight, target, **options)
    return loss / (items.to(loss.device) if torch.is_tensor(items) else items)


def _loss(logits, labels, vocab_size, items, ignore_index, shift_labels):
    """As ForCausalLMLoss, whose copy of the logits in f32 is not made."""
    target = _target(labels, ignore_index, shift_labels).reshape(-1).to(logits.device)
    rows, _ = heddle.ops.cross_entropy(logits.reshape(-1, vocab_size), target, ignore_index=ignore_index)
    if items is None:
        return rows.sum() / (target != ignore_index).sum()
    return rows.sum() / (items.to(rows.device) if torch.is_tensor(items) else items)


def _trial(own):
    """Returns why the function is not the known one, or "" where it computes the same."""
    logits = torch.linspace(-4, 4, 3 * 5 * 7, dtype=torch.float32).view(3, 5, 7)
    labels = torch.arange(15).view(3, 5) % 7
    labels[1, 2:] = -100
    for keywords in ({}, {"num_items_in_batch": torch.tensor(4)}, {"shift_labels": labels.roll(1)}):
        expected = own(logits, labels, 7, **keywords)
        arguments = {"num_items_in_batch": None, "shift_labels": None, **keywords}
        items, shifted = arguments["num_items_in_batch"], arguments["shift_labels"]
        if not torch.allclose(_loss(logits, labels, 7, items, -100, shifted), expected, atol=1e-6):
            return f"{own.__name__} of this transformers computes something else"
    return ""


def refusal(root):
    """Returns why the model keeps its own function, or ""."""
    own = getattr(root, "loss_function", None)
    if own is None:
        return f"{type(root).__name__} has no loss"
    if NAME in root.__dict__ and not isinstance(own, Loss):
        return f"loss_function was set to {getattr(own, '__qualname__', type(own).__name__)}"
    if isinstance(own, Loss):
        own = own.own
    if getattr(own, "__name__", "") != "ForCausalLMLoss":
        return f"its loss is {getattr(own, '__name__', type(own).__name__)}"
    with torch.no_grad(), torch.device("cpu"):
        return _trial(own)


def put_on(root):
    head, reason = head_of(root)
    root.__dict__[NAME] = Loss(root.loss_function, reason)
    if not reason:
        classes.put_on(head, HEAD)


def take_off(root):
    if isinstance(root.__dict__.get(NAME), Loss):
        del root.__dict__[NAME]
