"""Gradients: an autograd.Function for each op. heddle.ops calls it where nothing watches; otherwise the
kernel of torch's Autograd key does, in the middle of torch's dispatcher.

An op names calls of ordinary ops over named values (heddle/ir/gradient.h): `x` an argument, `dx` its
gradient, `x^T` it transposed, any other name a value that one call writes and later ones read.
"""

import functools
from dataclasses import dataclass

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

import heddle.ops
from heddle.errors import InvalidArgument, Unsupported
from heddle.ops.info import info as info_of
from heddle.torch.autocast import caster

is_any_autocast_enabled = torch._C._is_any_autocast_enabled
is_grad_enabled = torch.is_grad_enabled
are_transforms_active = torch._C._are_functorch_transforms_active
count_modes = torch._C._len_torch_dispatch_stack
AFTER_AUTOGRAD = torch._C._after_autograd_keyset


@dataclass(frozen=True)
class Step:
    """A call: `reads` and `writes` name values, in the order of the op's inputs and results."""

    op: str
    reads: tuple
    ranks: tuple  # dimensions of what is read
    writes: tuple
    attributes: tuple
    turns: bool  # something it reads is transposed
    needs: tuple  # what it cannot do without, and a call may leave out
    sums: bool  # it makes one vector, in f32 where nothing else is asked for


def _steps(info):
    """The calls of a gradient; None for an input that a call leaves out."""
    known = {each.field for each in (*info.inputs, *info.outputs)}
    known |= {f"d{output.field}" for output in info.results}
    may_lack = {each.field for each in info.inputs if each.optional}
    steps = []
    for op, names in info.gradient:
        called = info_of(op)
        reads = tuple(
            value if value.removesuffix("^T") in known else None
            for value in (names.get(each.field, each.field) for each in called.inputs)
        )
        writes = tuple(names.get(each.field, each.field) for each in called.results)
        known.update(writes)
        shared = {each.name for each in called.attributes} & {each.name for each in info.attributes}
        turns = any(read and read.endswith("^T") for read in reads)
        ranks = tuple(each.dims_text.count(",") + 1 for each in called.inputs)
        needs = tuple(
            read.removesuffix("^T")
            for read, each in zip(reads, called.inputs, strict=True)
            if read and not each.optional and read.removesuffix("^T") in may_lack
        )
        if needs:
            may_lack.update(writes)
        sums = len(writes) == 1 and called.results[0].lead < 0 and len(called.results[0].dims) == 1
        steps.append(Step(op, reads, ranks, writes, tuple(sorted(shared)), turns, needs, sums))
    return tuple(steps)


def _wanted(steps, wanted):
    """The steps that wanted values need, in order."""
    needed = set(wanted)
    chosen = []
    for step in reversed(steps):
        if needed.intersection(step.writes):
            chosen.append(step)
            needed.update(read.removesuffix("^T") for read in step.reads if read)
    return tuple(reversed(chosen))


def _flat(value, rank):
    return None if value is None else value.reshape(-1, *value.shape[-rank + 1 :])


def _reads_turned(step, values):
    """What a step reads where some of it is transposed: leading dimensions become one."""
    made = []
    for read, value, rank in zip(step.reads, values, step.ranks, strict=True):
        value = None if value is None else _flat(value, rank)
        made.append(value.mT if value is not None and read.endswith("^T") else value)
    return made


def _calls(steps, names):
    """The steps over a list of values, of which the first are named and the last is None; each name's place.

    A step is (function, itself if it reads what is transposed, places that it reads, attributes, places that
    it writes, places without which it makes nothing).
    """
    places = {name: place for place, name in enumerate(names)}
    for step in steps:
        for name in step.writes:
            places.setdefault(name, len(places))
    none = len(places)
    calls = tuple(
        (
            function_of(step.op),
            step if step.turns else None,
            tuple(none if read is None else places[read.removesuffix("^T")] for read in step.reads),
            step.attributes,
            tuple(places[name] for name in step.writes),
            tuple(places[name] for name in step.needs),
        )
        for step in steps
    )
    return calls, places


def _saved(info, read):
    """(name, its place among the inputs or, after those, the results) of what a backward reads."""
    arguments = [each.field for each in (*info.inputs, *info.results)]
    return tuple((name, place) for place, name in enumerate(arguments) if name in read)


def is_watched(tensor):
    return count_modes() or are_transforms_active() or type(tensor) is not torch.Tensor


def function_of(name):
    """The op as heddle.ops has it, which is the fastest way where nothing watches."""
    return getattr(heddle.ops, name)


def _sum(function, given, shape, dtype):
    """The vector of a step that sums, as it is wanted."""
    if len(shape) != 1:
        return function(*given, out=given[0].new_empty(shape, dtype=dtype))
    if dtype == torch.float32:  # as it comes
        return function(*given)
    # Through new_empty it takes longer.
    return function(*given, out=torch.empty_strided(shape, (1,), dtype=dtype, device=given[0].device))


def _rule(info):
    """The gradient of an op of heddle: the names of what it reads, and a function that makes, for names of
    values and of wanted gradients, the function of these values, attributes and the gradients' forms (shape,
    dtype) that returns the gradients. No forms: something looks on that follows no `out`."""
    steps = _steps(info)

    def make(names, wanted):
        chosen = _wanted(steps, wanted)
        calls, places = _calls(chosen, names)
        more = [None] * (len(places) + 1 - len(names))
        results = [places[gradient] for gradient in wanted]
        sums = {places[step.writes[0]] for step in chosen if step.sums}
        form_at = {place: number for number, place in enumerate(results) if place in sums}

        def run(values, attributes, forms):
            values = values + more
            for function, turned, reads, shared, writes, needs in calls:
                if needs and any(values[place] is None for place in needs):
                    continue
                given = [values[place] for place in reads]
                if turned:
                    given = _reads_turned(turned, given)
                if forms is not None and (number := form_at.get(writes[0])) is not None:
                    made = _sum(function, given, *forms[number])
                elif shared:
                    made = function(*given, **{name: attributes[name] for name in shared})
                else:
                    made = function(*given)
                if len(writes) == 1:
                    values[writes[0]] = made
                else:
                    for place, value in zip(writes, made, strict=True):
                        values[place] = value
            return [values[place] for place in results]

        return run

    return {value.removesuffix("^T") for step in steps for value in step.reads if value}, make


def own_rule(info, made):
    """The same for an op of one's own, whose class has a `backward`."""
    parameters = made.cls.declaration.backward
    gradients = tuple(f"d{each}" for each in made.cls.declaration.names(False))
    name = info.name

    def make(names, wanted):
        def run(values, attributes, forms):
            known = {**dict(zip(names, values, strict=True)), **attributes}
            found = made.cls.backward(*[known[each] for each in parameters])
            if not isinstance(found, dict):
                found = dict(
                    zip(gradients, found if isinstance(found, (tuple, list)) else (found,), strict=False)
                )
            for each in wanted:
                if found.get(each) is None:
                    raise InvalidArgument(
                        f"[{name}] its backward returns no {each}, and {each[1:]} requires a gradient; it "
                        f'must return a dict {{"{each}": tensor}}, or gradients in the order of reads'
                    )
            return [found[each] for each in wanted]

        return run

    return set(parameters), make


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


def _maker(info, make, saved, unsaved, is_own):
    """The function that makes the gradients of a call from its context, those of its results, which inputs
    need one, and attributes. `saved`, `unsaved`: whose values, and whose forms alone, the context has."""
    inputs = tuple(each.field for each in info.inputs)
    saved_at = {name: i for i, (name, _) in enumerate(saved)}
    values_of = (*saved_at, *(f"d{each.field}" for each in info.results))
    plans = {}  # by which inputs need a gradient

    def plan_of(needs):
        """The function that makes the gradients of the inputs that need them; and of each its place, its name
        and where its form is: among what is saved, or after that."""
        wanted = [place for place in range(len(inputs)) if needs[place]]
        targets = [
            (place, inputs[place], saved_at.get(inputs[place], len(saved) + sum(i < place for i in unsaved)))
            for place in wanted
        ]
        return make(values_of, tuple(f"d{inputs[place]}" for place in wanted)), targets

    def gradients_of(ctx, grads, needs, attributes):
        plan = plans.get(needs)
        if plan is None:
            plan = plans[needs] = plan_of(needs)
        run, targets = plan
        values = [*ctx.saved_tensors]
        known = values if not unsaved else [*values, *ctx.unsaved]
        forms = [known[at] for _, _, at in targets]
        forms = [form if isinstance(form, tuple) else (form.shape, form.dtype) for form in forms]
        no_elements = 0 in [grad.numel() for grad in grads]
        if no_elements:
            made = [None] * len(targets)
        else:
            watched = is_grad_enabled() or is_watched(grads[0])
            made = run([*values, *grads], attributes, None if watched else forms)
        gradients = [None] * len(inputs)
        for (place, name, _), (shape, dtype), value in zip(targets, forms, made, strict=True):
            if no_elements:
                gradients[place] = grads[0].new_zeros(shape, dtype=dtype)
            else:
                gradients[place] = _shaped(info.name, name, value, shape, dtype, is_own)
        return gradients

    return gradients_of


def apply_of_function(name, forward, backward):
    """What calls an autograd.Function of these, past Function.apply, which asks what the callers know."""
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
    read, make = rule
    saved = _saved(info, read)
    places = tuple(place for _, place in saved)
    # Gradients have the shapes and dtypes of their inputs. Those of inputs that are not saved are kept.
    unsaved = tuple(place for place in range(len(info.inputs)) if place not in places)
    defaults = {each.name: each.default for each in info.attributes}
    gradients_of = _maker(info, make, saved, unsaved, is_own)

    def forward(ctx, op, attributes, *values):
        output = op(*values, **attributes)
        values = (*values, *output) if isinstance(output, tuple) else (*values, output)
        ctx.save_for_backward(*[values[place] for place in places])
        ctx.attributes = attributes
        ctx.unsaved = unsaved and [
            None if values[i] is None else (values[i].shape, values[i].dtype) for i in unsaved
        ]
        return output

    def backward(ctx, *grads):
        attributes = {**defaults, **ctx.attributes} if defaults else ctx.attributes
        return (None, None, *gradients_of(ctx, grads, ctx.needs_input_grad[2:], attributes))

    return apply_of_function(info.name, forward, backward)


def refusing_of(name):
    """The same for an op without a gradient, which says so in its backward."""

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
    written = {value for step in _steps(info) for value in step.writes}
    missing = tuple(
        (i, each.name)
        for i, each in enumerate(info.inputs)
        if f"d{each.field}" not in written and not (made and has_rule)
    )
    error = InvalidArgument if has_rule else Unsupported
    remedy = "give the class a backward, detach it" if made else "detach it"
    apply = refusing = refusing_of(name)
    if has_rule:
        apply = make_function(info, own_rule(info, made) if made else _rule(info), made is not None)

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
