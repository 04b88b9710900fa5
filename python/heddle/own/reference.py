"""Calls the reference of an op of one's own, on arrays of NumPy."""

from heddle.errors import InvalidArgument, Unsupported


def call_reference(cls, arrays, attributes):
    """Returns the results of the class's reference, by the names of writes. It gets None for what is left
    out."""
    given = {name: arrays.get(name) for name in cls.declaration.names(False)}
    made = cls.reference(**given, **attributes)
    if isinstance(made, dict):
        return made
    return dict(zip(cls.declaration.names(True), made if isinstance(made, tuple) else (made,), strict=False))


def reference_of(of):
    """The function that heddle calls: values as bytes of f64, which the class's own sees as arrays."""

    def run(inputs, outputs, attributes):
        import numpy

        cls = of.cls
        if cls.reference is None:
            raise Unsupported(f"[{of.name}] has no reference; give the class one, on arrays of NumPy")
        arrays = {
            name: numpy.frombuffer(data, "float64").reshape(sizes) for name, (data, sizes) in inputs.items()
        }
        made = call_reference(cls, arrays, attributes)
        written = {}
        for name, sizes in outputs.items():
            values = numpy.ascontiguousarray(made.get(name), "float64") if name in made else None
            if values is None or list(values.shape) != sizes:
                have = "nothing" if values is None else f"sizes {list(values.shape)}"
                raise InvalidArgument(
                    f"[{cls.declaration.name}] its reference returns {have} for {name}; must have {sizes}"
                )
            written[name] = values.tobytes()
        return written

    return run
