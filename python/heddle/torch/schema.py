"""torch's schemas of ops, from their fields."""


def _input(tensor):
    return f"Tensor? {tensor.name}=None" if tensor.optional else f"Tensor {tensor.name}"


def _attribute(attribute):
    default = attribute.default
    if default is None:
        return f"{attribute.type} {attribute.name}"
    text = f'"{default}"' if attribute.type == "str" else repr(default)
    return f"{attribute.type} {attribute.name}={text}"


def _arguments(info):
    inputs = [_input(tensor) for tensor in info.inputs]
    attributes = [_attribute(attribute) for attribute in info.attributes]
    return inputs, attributes


def out_names(info):
    """Returns the names of the outputs in the form that writes to given ones."""
    results = info.results
    return ("out",) if len(results) == 1 else tuple(result.name for result in results)


def functional(info):
    """`rms_norm(Tensor x, Tensor weight, *, float eps=1e-05) -> Tensor`"""
    inputs, attributes = _arguments(info)
    arguments = ", ".join([*inputs, *(["*", *attributes] if attributes else [])])
    results = ["Tensor"] * len(info.results)
    returns = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return f"{info.name}({arguments}) -> {returns}"


def out(info):
    """`rms_norm.out(Tensor x, Tensor weight, *, float eps=1e-05, Tensor(a!) out) -> ()`"""
    inputs, attributes = _arguments(info)
    outputs = [f"Tensor({chr(ord('a') + i)}!) {name}" for i, name in enumerate(out_names(info))]
    return f"{info.name}.out({', '.join([*inputs, '*', *attributes, *outputs])}) -> ()"
