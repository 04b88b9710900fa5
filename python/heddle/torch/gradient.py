"""Gradients: an autograd.Function for each op that names one, around the registered op.

An op names calls of ordinary ops over named values (heddle/ir/gradient.h): `x` an argument, `dx` its
gradient, `x^T` it transposed, any other name a value that one call writes and later ones read.
"""

from dataclasses import dataclass

import torch

import heddle.ops
from heddle.errors import InvalidArgument, Unsupported
from heddle.ops.info import info as info_of
from heddle.torch.autocast import caster

is_any_autocast_enabled = torch._C._is_any_autocast_enabled
is_grad_enabled = torch.is_grad_enabled
are_transforms_active = torch._C._are_functorch_transforms_active

# By name. torch.compile follows a Function that it finds in a module's own table, and not one in a closure.
FUNCTIONS = {}
TRANSFORMED = {}  # the same for torch.func, whose form takes longer to call


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


def _distinct(inputs):
    """The inputs, where torch.compile takes no tensor twice."""
    seen = []
    for value in inputs:
        again = value is not None and any(value is other for other in seen)
        seen.append(value.view_as(value) if again else value)
    return tuple(seen)


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


def _shaped(op, name, value, shape, dtype):
    """A gradient as its input has it."""
    if value.shape == shape and value.dtype == dtype:
        return value
    if not torch.compiler.is_compiling() and value.numel() != shape.numel():
        raise InvalidArgument(
            f"[{op}] its backward returns d{name} of sizes {list(value.shape)}; must have {list(shape)}"
        )
    return value.to(dtype).reshape(shape)


def _function(op, **methods):
    """An autograd.Function of static methods."""
    methods = {name: staticmethod(method) for name, method in methods.items()}
    return type(f"{op}_gradient", (torch.autograd.Function,), methods)


def _maker(info, make, saved, unsaved):
    """The function that makes the gradients of a call from its context, those of its results, which inputs
    need one, and attributes. `saved`, `unsaved`: whose values, and whose forms alone, the context has."""
    inputs = tuple(each.field for each in info.inputs)
    saved_at = {name: i for i, (name, _) in enumerate(saved)}
    values_of = (*saved_at, *(f"d{each.field}" for each in info.results))

    def plan_of(needs):
        """The function that makes the gradients of the inputs that need them; and of each its place, its name
        and where its form is: among what is saved, or after that."""
        wanted = [place for place in range(len(inputs)) if needs[place]]
        targets = [
            (place, inputs[place], saved_at.get(inputs[place], len(saved) + sum(i < place for i in unsaved)))
            for place in wanted
        ]
        return make(values_of, tuple(f"d{inputs[place]}" for place in wanted)), targets

    plans = {}

    def gradients_of(ctx, grads, needs, attributes):
        compiles = torch.compiler.is_compiling()
        if compiles:  # it follows no change of a table
            run, targets = plan_of(needs)
        elif (plan := plans.get(needs)) is not None:
            run, targets = plan
        else:
            run, targets = plans[needs] = plan_of(needs)
        values = [*ctx.saved_tensors]
        known = values if not unsaved else [*values, *ctx.unsaved]
        forms = [known[at] for _, _, at in targets]
        forms = [form if isinstance(form, tuple) else (form.shape, form.dtype) for form in forms]
        no_elements = 0 in [grad.numel() for grad in grads]
        if no_elements:
            made = [None] * len(targets)
        else:
            is_watched = compiles or are_transforms_active()
            made = run([*values, *grads], attributes, None if is_watched else forms)
        gradients = [None] * len(inputs)
        for (place, name, _), (shape, dtype), value in zip(targets, forms, made, strict=True):
            if no_elements:
                gradients[place] = grads[0].new_zeros(shape, dtype=dtype)
            else:
                gradients[place] = _shaped(info.name, name, value, shape, dtype)
        return gradients

    return gradients_of


def make_functions(info, op, rule):
    """The autograd.Functions of an op: their arguments are the op's inputs, then its attributes. Returns the
    function of calls that neither torch.compile nor torch.func looks at: attributes come first, as a dict."""
    read, make = rule
    op_name = info.name
    saved = _saved(info, read)
    places = tuple(place for _, place in saved)
    # Gradients have the shapes and dtypes of their inputs. Those of inputs that are not saved are kept.
    unsaved = tuple(place for place in range(len(info.inputs)) if place not in places)
    names = tuple(each.name for each in info.attributes)
    defaults = {each.name: each.default for each in info.attributes}
    count = len(info.inputs)

    def forward(*arguments):
        return op(*arguments[:count], **dict(zip(names, arguments[count:], strict=True)))

    def forms_of(values):
        return [None if values[i] is None else (values[i].shape, values[i].dtype) for i in unsaved]

    def keep(ctx, arguments, output):
        values = (*arguments[:count], *(output if isinstance(output, tuple) else (output,)))
        ctx.save_for_backward(*[values[place] for place in places])
        ctx.attributes = arguments[count:]
        ctx.unsaved = forms_of(values)

    gradients_of = _maker(info, make, saved, unsaved)

    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        attributes = dict(zip(names, ctx.attributes, strict=True))
        return (*gradients_of(ctx, grads, ctx.needs_input_grad, attributes), *(None for _ in names))

    def backward_first(ctx, *grads):
        attributes = {**defaults, **ctx.attributes} if defaults else ctx.attributes
        return (None, *gradients_of(ctx, grads, ctx.needs_input_grad[1:], attributes))

    backward_once = torch.autograd.function.once_differentiable(backward_first)

    def backward_any(ctx, *grads):
        # Only a graph of the gradient asks for more than the function itself, and that takes 5 us.
        return backward_once(ctx, *grads) if is_grad_enabled() else backward_first(ctx, *grads)

    def forward_first(ctx, attributes, *values):
        output = op(*values, **attributes)
        values = (*values, *output) if isinstance(output, tuple) else (*values, output)
        ctx.save_for_backward(*[values[place] for place in places])
        ctx.attributes = attributes
        ctx.unsaved = unsaved and forms_of(values)
        return output

    def forward_and_keep(ctx, *arguments):
        output = forward(*arguments)
        keep(ctx, arguments, output)
        return output

    FUNCTIONS[op_name] = _function(op_name, forward=forward_and_keep, backward=backward)
    TRANSFORMED[op_name] = _function(op_name, forward=forward, setup_context=keep, backward=backward)
    first = _function(op_name, forward=forward_first, backward=backward_any)
    # Past Function.apply, which asks what call_with and call_eager know.
    return super(torch.autograd.Function, first).apply


def make_call(info, op, made=None):
    """Two functions of the op's inputs and a dict of attributes, for inputs that require a gradient: one that
    torch.compile follows, and one that it does not see. `made`: the op is one's own."""
    cast = caster(info)
    # Whole numbers have no gradient, and need none.
    if all(set(result.dtypes) <= {"int32", "int64"} for result in info.results):

        def call_without(inputs, attributes):
            with torch.no_grad():
                return op(*inputs, **attributes)

        return call_without, call_without
    has_gradient = bool(info.gradient if made is None else made.cls.backward)
    written = {value for step in _steps(info) for value in step.writes}
    missing = tuple(
        (i, each.name)
        for i, each in enumerate(info.inputs)
        if f"d{each.field}" not in written and not (made and has_gradient)
    )
    error = InvalidArgument if has_gradient else Unsupported
    remedy = "give the class a backward, detach it" if made else "detach it"
    defaults = tuple((each.name, each.default) for each in info.attributes)
    name = info.name
    apply = make_functions(info, op, own_rule(info, made) if made else _rule(info)) if has_gradient else None

    def refuse_missing(inputs):
        for i, argument in missing:
            if inputs[i] is not None and inputs[i].requires_grad:
                raise error(
                    f"[{name}] {argument} requires a gradient, and {name} has none for it; {remedy}, or "
                    "call under torch.no_grad()"
                )

    def call_with(inputs, attributes):
        refuse_missing(inputs)
        if not torch.compiler.is_compiling():
            return call_eager(inputs, attributes)
        inputs = cast(inputs) if cast else inputs
        return FUNCTIONS[name].apply(
            *_distinct(inputs), *(attributes.get(key, default) for key, default in defaults)
        )

    def call_eager(inputs, attributes):
        if missing:
            refuse_missing(inputs)
        if cast and is_any_autocast_enabled():
            inputs = cast(inputs)
        if not are_transforms_active():
            return apply(attributes, *inputs)
        return TRANSFORMED[name].apply(*inputs, *(attributes.get(key, default) for key, default in defaults))

    return call_with, call_eager
