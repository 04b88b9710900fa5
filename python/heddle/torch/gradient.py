"""Gradients: an autograd.Function for each op. heddle.ops calls it where nothing watches and there is no node
of heddle's in C++ (node.py); otherwise the kernel of torch's Autograd key does, in the middle of torch's
dispatcher.

_heddle computes the gradients (python/src/backward.h). Here is what torch must see of them.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

import heddle.ops
from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported
from heddle.torch.autocast import caster

is_any_autocast_enabled = torch._C._is_any_autocast_enabled
is_grad_enabled = torch.is_grad_enabled
are_transforms_active = torch._C._are_functorch_transforms_active
count_modes = torch._C._len_torch_dispatch_stack
AFTER_AUTOGRAD = torch._C._after_autograd_keyset


@dataclass(frozen=True)
class Rule:
    """A backward. `saved`: places of what it reads, of inputs and of results after those. `lacks`: those of
    inputs that have no gradient. `run`: a function of which inputs need one, what is saved, the results'
    gradients, attributes and the (shape, dtype) of the gradients; it returns them by input. No such forms:
    something looks on that follows no `out`."""

    saved: tuple
    lacks: tuple
    run: Callable


def is_watched(tensor):
    return count_modes() or are_transforms_active() or type(tensor) is not torch.Tensor


def function_of(name):
    """The op as heddle.ops has it, which is the fastest way where nothing watches."""
    return getattr(heddle.ops, name)


def _rule(info):
    """The rule of an op of heddle."""
    return Rule(run=functools.partial(_heddle.run_gradient, info.name), **_heddle.gradient_rule(info.name))


def own_rule(info, made):
    """The rule of an op of one's own, whose class has a `backward`."""
    parameters = made.cls.declaration.backward
    arguments = [each.field for each in (*info.inputs, *info.results)]
    saved = tuple(place for place, name in enumerate(arguments) if name in parameters)
    names = (*(arguments[place] for place in saved), *(f"d{each.field}" for each in info.results))
    gradients = tuple(f"d{each.field}" for each in info.inputs)
    reads = tuple(f"d{each}" for each in made.cls.declaration.names(False))  # optional ones are not last here
    defaults = {each.name: each.default for each in info.attributes}

    def run(needs, values, grads, attributes, forms):
        known = {**dict(zip(names, (*values, *grads), strict=True)), **defaults, **attributes}
        found = made.cls.backward(*[known[each] for each in parameters])
        if not isinstance(found, dict):
            found = dict(zip(reads, found if isinstance(found, (tuple, list)) else (found,), strict=False))
        for each, needed in zip(gradients, needs, strict=True):
            if needed and found.get(each) is None:
                raise InvalidArgument(
                    f"[{info.name}] its backward returns no {each}, and {each[1:]} requires a gradient; it "
                    f'must return a dict {{"{each}": tensor}}, or gradients in the order of reads'
                )
        return [found.get(each) for each in gradients]

    return Rule(saved, (), run)


def _in_its_order(value, shape):
    """True for sizes of the elements of `shape` in their order, leading dimensions folded or not."""
    sizes, wanted = ([n for n in each if n != 1] for each in (value.shape, shape))
    return sizes == wanted or (
        value.dim() < len(shape)
        and value.shape[1:] == shape[len(shape) - value.dim() + 1 :]
        and value.numel() == shape.numel()
    )


def _shaped(op, name, value, shape, dtype, is_own):
    """A gradient as its input has it. Those of heddle's ops have rows instead of leading dimensions."""
    if value.shape == shape and value.dtype == dtype:
        return value
    if is_own and not _in_its_order(value, shape):
        raise InvalidArgument(
            f"[{op}] its backward returns d{name} of sizes {list(value.shape)}; must have {list(shape)}"
        )
    return value.to(dtype).reshape(shape)


def _unsaved(info, rule):
    """Inputs of which the context has the form alone."""
    return tuple(place for place in range(len(info.inputs)) if place not in rule.saved)


def _gradients_of(info, rule, is_own):
    """The function that makes the gradients of a call from what was saved, the forms of inputs that were
    not, those of its results, which inputs need one, and attributes."""
    saved_at = {place: number for number, place in enumerate(rule.saved)}
    unsaved_at = {place: number for number, place in enumerate(_unsaved(info, rule))}
    names = tuple(each.field for each in info.inputs)

    def form_of(place, saved, unsaved):
        number = saved_at.get(place)
        return unsaved[unsaved_at[place]] if number is None else (saved[number].shape, saved[number].dtype)

    def gradients_of(saved, unsaved, grads, needs, attributes):
        forms = [form_of(place, saved, unsaved) if needed else None for place, needed in enumerate(needs)]
        if 0 in [grad.numel() for grad in grads]:
            return [form and grads[0].new_zeros(form[0], dtype=form[1]) for form in forms]
        watched = is_grad_enabled() or is_watched(grads[0])
        made = rule.run(needs, saved, grads, attributes, None if watched else forms)
        return [
            form and _shaped(info.name, name, value, *form, is_own)
            for name, value, form in zip(names, made, forms, strict=True)
        ]

    return gradients_of


def apply_of_function(name, forward, backward):
    """Returns a function that calls an autograd.Function of these, past Function.apply, which asks what the
    callers know."""
    made = type(
        f"{name}_gradient",
        (torch.autograd.Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
    return super(torch.autograd.Function, made).apply


def _below(keyset, registered, /, *inputs, **attributes):
    """The call below the keys of autograd. Lower levels of torch.func keep their gradients, which a Function
    turns off."""
    with torch._C._AutoDispatchBelowAutograd():
        if not are_transforms_active():
            return registered.redispatch(keyset & AFTER_AUTOGRAD, *inputs, **attributes)
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return registered.redispatch(keyset & AFTER_AUTOGRAD, *inputs, **attributes)


def make_function(info, rule, is_own):
    """A function of what calls the op, attributes and inputs: a call with a gradient."""
    unsaved = _unsaved(info, rule)
    gradients_of = _gradients_of(info, rule, is_own)

    def forward(ctx, op, attributes, *values):
        output = op(*values, **attributes)
        values = (*values, *output) if isinstance(output, tuple) else (*values, output)
        ctx.save_for_backward(*[values[place] for place in rule.saved])
        ctx.attributes = attributes
        ctx.unsaved = unsaved and [
            None if values[i] is None else (values[i].shape, values[i].dtype) for i in unsaved
        ]
        return output

    def backward(ctx, *grads):
        needs = ctx.needs_input_grad[2:]
        return (None, None, *gradients_of(ctx.saved_tensors, ctx.unsaved, grads, needs, ctx.attributes))

    return apply_of_function(info.name, forward, backward)


def refusing_of(name):
    """Makes the same for an op without a gradient, which says so in its backward."""

    def forward(ctx, op, attributes, *values):
        return op(*values, **attributes)

    def backward(ctx, *grads):
        raise Unsupported(f"[{name}] is a part of a gradient and has none itself: no second derivative")

    return apply_of_function(name, forward, backward)


def _refuse_tangents(op, names, inputs):
    for name, value in zip(names, inputs, strict=True):
        if value is not None and forward_ad.unpack_dual(value).tangent is not None:
            raise Unsupported(
                f"[{op}] {name} has a tangent, and heddle's ops have no derivatives in forward mode; "
                "use reverse mode: backward, torch.func.grad, vjp or jacrev"
            )


def kernel_of(name, names, registered, apply_of):
    """The kernel of torch's Autograd key for an op. `apply_of`: what calls its Function, for inputs of which
    one requires a gradient; None: it has none, and needs none."""

    def kernel(keyset, *inputs, **attributes):
        inputs = (*inputs, *(None for _ in range(len(names) - len(inputs))))
        if forward_ad._current_level >= 0:
            _refuse_tangents(name, names, inputs)
        wants = is_grad_enabled() and any(each is not None and each.requires_grad for each in inputs)
        apply = apply_of(inputs) if wants else None
        if apply is None:
            with torch.set_grad_enabled(is_grad_enabled() and not wants):
                return _below(keyset, registered, *inputs, **attributes)
        with enable_single_level_autograd_function():  # a level of torch.func is one of its Functions
            return apply(functools.partial(_below, keyset, registered), attributes, *inputs)

    return kernel


def _is_in_backward():
    return torch._C._current_graph_task_id() != -1


def make_calls(info, op, registered, made=None):
    """Two functions: of inputs and a dict of attributes, for a call that nothing watches and that wants a
    gradient; and the kernel of torch's Autograd key. `made`: the op is one's own."""
    name, cast = info.name, caster(info)
    has_rule = bool(info.gradient if made is None else made.cls.backward)
    # Whole numbers have no gradient, and need none.
    needs_none = all(set(result.dtypes) <= {"int32", "int64"} for result in info.results)
    rule = own_rule(info, made) if made and has_rule else _rule(info)
    missing = tuple((i, info.inputs[i].name) for i in rule.lacks)
    error = InvalidArgument if has_rule else Unsupported
    remedy = "give the class a backward, detach it" if made else "detach it"
    refusing = refusing_of(name)
    apply = make_function(info, rule, made is not None) if has_rule else refusing

    def missing_of(inputs):
        """The name of the first input that requires a gradient, where the op has none for it."""
        for i, argument in missing:
            if inputs[i] is not None and inputs[i].requires_grad:
                return argument
        return None

    def refuse(argument):
        raise error(
            f"[{name}] {argument} requires a gradient, and {name} has none for it; {remedy}, or "
            "call under torch.no_grad()"
        )

    def call_without(inputs, attributes):
        with torch.no_grad():
            return op(*inputs, **attributes)

    def call_eager(inputs, attributes):
        if missing and (argument := missing_of(inputs)):
            if not _is_in_backward():
                refuse(argument)
            return registered(*inputs, **attributes)
        if are_transforms_active():
            return registered(*inputs, **attributes)
        if cast and is_any_autocast_enabled():
            inputs = cast(inputs)
        return apply(op, attributes, *inputs)

    def apply_of(inputs):
        if needs_none:
            return None
        argument = missing_of(inputs)
        if argument and not _is_in_backward():  # a second derivative is refused when it is taken
            refuse(argument)
        return refusing if argument else apply

    eager = call_without if needs_none else call_eager
    return eager, kernel_of(name, tuple(each.name for each in info.inputs), registered, apply_of)
