"""Describes an op: its tensors, attributes, gradient."""

from dataclasses import dataclass

from heddle import _heddle
from heddle.display import code
from heddle.errors import named


@dataclass(frozen=True)
class Dim:
    """A dimension: `scale` times the size that has this name; no name where any size is right."""

    name: str
    scale: int
    is_attribute: bool  # the attribute of that name is the size


@dataclass(frozen=True)
class TensorInfo:
    name: str
    field: str  # the name in gradients
    dims: tuple[Dim, ...]
    dims_text: str
    dtypes: tuple[str, ...]
    optional: bool
    lead: int  # tensors with one number share their leading dimensions; -1: it takes none
    note: str = ""  # its shape and meaning, as the op's header has them


@dataclass(frozen=True)
class AttributeInfo:
    name: str
    type: str
    default: object  # None: a call must give it
    choices: tuple[str, ...]
    note: str = ""  # its meaning and valid values


@dataclass(frozen=True, repr=False)
class OpInfo:
    name: str
    doc: str
    signature: str
    takes_dim: bool  # a call may name the dimension: dim=-1
    why_not: str  # why it cannot be called by itself; empty: it can
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: tuple[AttributeInfo, ...]
    gradient: tuple[tuple[str, dict], ...]  # calls {argument: value}; empty: it has none
    saved: tuple[str, ...]  # inputs and outputs that a call with a gradient keeps for it
    about: str  # its formula, and what is special
    example: str  # lines of Python
    autocast: str  # torch.autocast: "lower": inputs get its dtype; "float32": that, on a GPU; "": they stay

    def __repr__(self):
        return f"<OpInfo {self.name}{self.signature}: {self.doc}>"

    def __str__(self):
        return _heddle.function(self.name).__doc__

    def _repr_html_(self):
        return code(f"{self.name}{self.signature}\n\n{self}")

    @property
    def callable(self):
        return not self.why_not

    @property
    def results(self):
        """The outputs that a call returns when it asks for no more."""
        return tuple(output for output in self.outputs if not output.optional)


def _tensor(made):
    dims = tuple(Dim(*dim) for dim in made.pop("dims"))
    return TensorInfo(dims=dims, dtypes=tuple(made.pop("dtypes")), **made)


def _attribute(made):
    return AttributeInfo(choices=tuple(made.pop("choices")), **made)


@named
def info(name: str) -> OpInfo:
    """Describes the op; raises InvalidArgument where there is none of that name."""
    made = _heddle.describe(name)
    return OpInfo(
        inputs=tuple(_tensor(each) for each in made.pop("inputs")),
        outputs=tuple(_tensor(each) for each in made.pop("outputs")),
        attributes=tuple(_attribute(each) for each in made.pop("attributes")),
        gradient=tuple(made.pop("gradient")),
        saved=tuple(made.pop("saved")),
        **made,
    )
