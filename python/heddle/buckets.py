"""Shapes in buckets: inputs of any length are padded to one of a few lengths, and outputs are cropped.

>>> edges = heddle.buckets.bucket_edges(lengths, 16)  # those with the least padding
>>> model = heddle.buckets.bucketed(
...     model, {"S": edges}, dims={"input_ids": {1: "S"}}, pad={"input_ids": 0}, outputs={"logits": {1: "S"}}
... )

See docs/training.md.
"""

import bisect
import collections
import threading
from dataclasses import dataclass

from heddle.errors import InvalidArgument, Unsupported

__all__ = ["Bucketed", "Edges", "bucket_edges", "bucketed"]

SEARCHED = 8  # times the number of edges, to say how many would do
GRAPHS = 32  # that a module keeps: those used last


@dataclass(frozen=True)
class Edges:
    """Lengths that inputs are padded to, ascending, and the share of all padded elements that is padding."""

    edges: tuple
    padding: float

    def edge_of(self, length):
        at = bisect.bisect_left(self.edges, length)
        if at == len(self.edges):
            raise InvalidArgument(
                f"[heddle.buckets] length {length} is above the last edge, {self.edges[-1]}; "
                "must be among the lengths that the edges were made of, or below"
            )
        return self.edges[at]


def bucket_edges(lengths, count=16, *, max_padding=0.10, multiple=1, cost=None):
    """The fewest edges, at most `count`, with which padding is at most `max_padding` of all elements, and of
    these the cheapest: the sum of cost(edge) over all lengths is the least that is possible. `cost` may not
    fall with the length; None: the length itself. Edges are multiples of `multiple`. With `max_padding=None`
    they are the cheapest `count`, whatever their padding.

    Raises Unsupported, with the least padding, where `count` edges do not reach it."""
    observed = collections.Counter(int(each) for each in lengths)
    if not observed or min(observed) < 1:
        raise InvalidArgument("[heddle.buckets] lengths must be whole numbers, 1 or more, and at least one")
    if count < 1 or multiple < 1 or not 0 <= (max_padding or 0) <= 1:
        raise InvalidArgument(
            f"[heddle.buckets] count = {count}, multiple = {multiple}, max_padding = {max_padding}; "
            "must be at least 1, at least 1, and from 0 to 1"
        )
    grouped = collections.Counter()
    for length, times in observed.items():
        grouped[-(-length // multiple) * multiple] += times
    ends = sorted(grouped)
    prices = ends if cost is None else [cost(end) for end in ends]
    if prices != sorted(prices):
        raise InvalidArgument("[heddle.buckets] cost must not fall with the length")
    used = sum(length * times for length, times in observed.items())
    limit = count if max_padding is None else SEARCHED * count
    best = None
    for edges, of_edges in _cheapest(ends, [grouped[end] for end in ends], prices, limit):
        total = sum(edge * times for edge, times in zip(edges, of_edges, strict=True))
        found = Edges(tuple(edges), 1 - used / total)
        if max_padding is not None and found.padding <= max_padding:
            break
        best = found if len(edges) <= count else best
    if max_padding is None or (len(found.edges) <= count and found.padding <= max_padding):
        return found
    enough = f"{len(found.edges)} edges reach it" if found.padding <= max_padding else "give more edges"
    least = "at least" if cost is None else "where they are the cheapest"
    raise Unsupported(
        f"[heddle.buckets] {count} edges pad {best.padding:.1%} {least}; must be {max_padding:.1%} or less: "
        f"{enough}, and max_padding=None takes any"
    )


def _cheapest(ends, times, prices, count):
    """For 1 edge, 2 edges, ...: the cheapest edges, and how many lengths each takes.

    The cost of the first j ends is a minimum over i < j of cost[i] + (below[j] - below[i]) * price[j]: of
    lines in the price, whose slopes fall with i. Their lower hull gives it in one walk, since prices rise."""
    below = [0]
    for each in times:
        below.append(below[-1] + each)
    costs, choices = [0] + [None] * len(ends), []
    for _ in range(min(count, len(ends))):
        hull, first = [], 0
        following, choice = [None] * len(costs), [0] * len(costs)
        for j in range(1, len(costs)):
            if costs[j - 1] is not None:
                _add_line(hull, first, (-below[j - 1], costs[j - 1], j - 1))
            if not hull[first:]:
                continue
            price = prices[j - 1]
            while first + 1 < len(hull) and _at(hull[first + 1], price) <= _at(hull[first], price):
                first += 1
            following[j] = _at(hull[first], price) + below[j] * price
            choice[j] = hull[first][2]
        choices.append(choice)
        costs = following
        yield _walked(ends, below, choices)


def _at(line, price):
    return line[0] * price + line[1]


def _add_line(hull, first, new):
    """Adds a line of a smaller slope; those that are nowhere the lowest go."""
    while len(hull) - first >= 2:
        (a, b, _), (c, d, _) = hull[-2:]
        if (new[1] - b) * (a - c) > (d - b) * (a - new[0]):
            break
        hull.pop()
    hull.append(new)


def _walked(ends, below, choices):
    edges, sizes, j = [], [], len(ends)
    for choice in reversed(choices):
        edges.append(ends[j - 1])
        sizes.append(below[j] - below[choice[j]])
        j = choice[j]
    return edges[::-1], sizes[::-1]


def bucketed(module, edges, *, dims, pad, outputs, graphs=True):
    """The module with padded inputs and cropped outputs.

    edges: {name of a length: Edges, or lengths}. dims: {argument: {dimension: name}}, of each tensor among
    the arguments; {} for one that has no such dimension. pad: {argument: value}, of each that is padded.
    outputs: {key or position: {dimension: name}}, or {dimension: name} of a single tensor, of those to crop.
    The module must not let padded positions change others: give it its mask.

    With `graphs`, on a GPU and without gradients each shape is captured once as a CUDA graph, all of which
    share one pool."""
    return Bucketed(module, edges, dims, pad, outputs, graphs)


class Bucketed:
    """A module whose inputs are padded. `counts` has the calls of each bucket, `padding` the share of padded
    elements so far."""

    def __init__(self, module, edges, dims, pad, outputs, graphs):
        import inspect

        self.module, self.dims, self.pad, self.outputs = module, dims, pad, outputs
        self.edges = {
            name: each if isinstance(each, Edges) else Edges(tuple(sorted(set(each))), 0.0)
            for name, each in edges.items()
        }
        for argument, marked in dims.items():
            for name in marked.values():
                if name not in self.edges:
                    raise InvalidArgument(f"[heddle.buckets] {argument} has the length {name}, without edges")
            if marked and argument not in pad:
                raise InvalidArgument(
                    f"[heddle.buckets] {argument} is padded, but pad has no value for it; must name one"
                )
        forward = getattr(module, "forward", module)
        self._signature = inspect.signature(forward)
        self._graphs = _Graphs(module) if graphs else None
        self._lock = threading.Lock()
        self.counts, self._used, self._padded = collections.Counter(), 0, 0

    @property
    def padding(self):
        return 1 - self._used / self._padded if self._padded else 0.0

    def __call__(self, *arguments, **named):
        import torch

        bound = self._signature.bind(*arguments, **named)
        given = dict(bound.arguments)
        given.update(given.pop("kwargs", {}))  # the module takes these by any name
        tensors = {name: each for name, each in given.items() if isinstance(each, torch.Tensor)}
        lengths = self._lengths(tensors)
        shape = {name: self.edges[name].edge_of(length) for name, length in lengths.items()}
        padded = {name: self._padded_to(name, each, shape) for name, each in tensors.items()}
        marked = [name for name in tensors if self.dims[name]]
        with self._lock:
            self.counts[tuple(sorted(shape.items()))] += 1
            self._used += sum(tensors[name].numel() for name in marked)
            self._padded += sum(padded[name].numel() for name in marked)
        given.update(padded)
        if self._graphs is not None and self._graphs.can_run(padded.values()):
            with self._lock:
                made = self._graphs(given, padded)
        else:
            made = self.module(**given)
        return self._cropped(made, lengths, shape)

    def _lengths(self, tensors):
        lengths = {}
        for name, tensor in tensors.items():
            if name not in self.dims:
                raise InvalidArgument(
                    f"[heddle.buckets] {name} is a tensor that dims does not name; "
                    "must be there, with {} where nothing is padded"
                )
            for dim, length in self.dims[name].items():
                if lengths.setdefault(length, tensor.shape[dim]) != tensor.shape[dim]:
                    raise InvalidArgument(
                        f"[heddle.buckets] {name} has {tensor.shape[dim]} elements in dimension {dim}, "
                        f"others have {lengths[length]} of {length}; must be equal"
                    )
        return lengths

    def _padded_to(self, name, tensor, shape):
        sizes = list(tensor.shape)
        for dim, length in self.dims[name].items():
            sizes[dim] = shape[length]
        if sizes == list(tensor.shape):
            return tensor
        made = tensor.new_full(sizes, self.pad[name])
        made[tuple(slice(size) for size in tensor.shape)] = tensor
        return made

    def _cropped(self, made, lengths, shape):
        import torch

        def cropped(tensor, marked):
            at = [slice(None)] * tensor.dim()
            for dim, name in marked.items():
                if tensor.shape[dim] != shape[name]:
                    raise InvalidArgument(
                        f"[heddle.buckets] an output has {tensor.shape[dim]} elements in dimension {dim}; "
                        f"must have {shape[name]}, the padded {name}"
                    )
                at[dim] = slice(lengths[name])
            return tensor[tuple(at)]

        def one(key, value):
            if value is None or isinstance(value, int | float | str):
                return value
            if isinstance(value, torch.Tensor) and (value.dim() == 0 or key in self.outputs):
                return cropped(value, self.outputs.get(key, {}))
            if key in self.outputs and not self.outputs[key]:
                return value
            raise InvalidArgument(
                f"[heddle.buckets] the module gives {key!r}, which outputs does not name; "
                "must be there, with {} where nothing is cropped"
            )

        if isinstance(made, torch.Tensor):
            return cropped(made, self.outputs) if made.dim() else made
        if isinstance(made, dict):
            whole = dict(made.items())
            return type(made)(**{key: one(key, value) for key, value in whole.items()})
        return type(made)(one(key, value) for key, value in enumerate(made))


class _Graphs:
    """CUDA graphs of a module, one for each shape of its inputs. They share a pool, so that a result is
    copied out before another one runs."""

    def __init__(self, module):
        self.module, self.pool, self.kept = module, None, collections.OrderedDict()

    def can_run(self, tensors):
        import torch

        return not torch.is_grad_enabled() and all(each.is_cuda for each in tensors)

    def __call__(self, given, padded):
        import torch
        from torch.utils import _pytree as pytree

        others = {name: each for name, each in given.items() if name not in padded}
        key = (repr(others), *((name, each.shape, each.dtype) for name, each in padded.items()))
        if key not in self.kept:
            self.kept[key] = self._captured(given, padded)
            if len(self.kept) > GRAPHS:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        graph, inputs, made = self.kept[key]
        for name, each in padded.items():
            inputs[name].copy_(each)
        graph.replay()
        return pytree.tree_map_only(torch.Tensor, torch.clone, made)

    def _captured(self, given, padded):
        import torch

        inputs = {name: each.clone() for name, each in padded.items()}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.module(**{**given, **inputs})  # what a first call allocates and tunes is not captured
        torch.cuda.current_stream().wait_stream(stream)
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            made = self.module(**{**given, **inputs})
        return graph, inputs, made
