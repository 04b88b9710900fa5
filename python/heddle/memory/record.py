"""One run of a block as a list of op calls, and the tensors that its backward reads: kept, copied to the
host, or made again by those calls.

Nothing here knows a model. A `Run` sees each op below autograd and autocast, so that a call made again has
the same inputs, and on the same kernel the same bits. What an op did not announce (a kernel that a library
launched itself) has no call, and is never made again.
"""

import functools
import sys
import weakref

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from heddle.errors import Error

KEEP, OFFLOAD = "keep", "offload"
_PLAIN = (torch.Tensor, torch.nn.Parameter)
# Their outputs are memory for others to write, or depend on no tensor: no call makes them again.
_MAKERS = ("empty", "new_", "zeros", "ones", "full", "rand", "arange", "scalar_tensor", "lift_fresh")
with torch._C._DisableTorchDispatch():
    _KEYS = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()


def _no_dispatch():
    """No mode sees calls, and autograd does: only so does a tensor's alias count changes along with it."""
    return torch._C._ForceDispatchKeyGuard(*_KEYS)


class _Facts:
    def __init__(self, func):
        arguments = func._schema.arguments
        self.written = [
            (place, each.name)
            for place, each in enumerate(arguments)
            if each.alias_info is not None and each.alias_info.is_write
        ]
        self.random = torch.Tag.nondeterministic_seeded in func.tags
        names = [each.name for each in arguments]
        self.dropout = names.index("dropout_p") if "dropout_p" in names else None
        self.maker = func._schema.name.partition("::")[2].startswith(_MAKERS)

    def targets(self, args, kwargs):
        """The tensors that the call writes into."""
        for place, name in self.written:
            given = args[place] if place < len(args) else kwargs.get(name)
            for each in given if isinstance(given, (list, tuple)) else (given,):
                if isinstance(each, torch.Tensor):
                    yield each

    def draws(self, args, kwargs):
        """The call takes random numbers."""
        if not self.random or self.dropout is None:
            return self.random
        given = args[self.dropout] if len(args) > self.dropout else kwargs.get("dropout_p", 0.0)
        return given != 0.0


facts = functools.cache(_Facts)


class Value:
    """A tensor of a run: the output of a call, or (no call) one that came from outside."""

    __slots__ = (
        *("index", "call", "place", "bytes", "tensor", "needs", "is_changed", "is_free", "is_dense"),
        *("piece", "leaving", "coming", "like", "version"),
    )

    def __init__(self, index, call, place):
        # Its number in the run; the number of its call; its place among the outputs.
        self.index, self.call, self.place = index, call, place
        self.bytes = 0  # that holding it costs: 0 for a view
        self.tensor = None  # held: no history, the same memory
        self.needs = 0  # saved tensors that are still to be made of it
        self.is_changed = False  # an op wrote into its memory later
        self.is_free = False  # others hold it anyhow: parameters, tables
        self.is_dense = False
        self.piece = self.leaving = self.coming = self.like = self.version = None


class Call:
    """An op call of a run."""

    __slots__ = ("args", "func", "inputs", "kwargs", "outputs", "rng")

    def __init__(self, func, args, kwargs, inputs, rng):
        self.func, self.args, self.kwargs, self.inputs, self.rng = func, args, kwargs, inputs, rng
        self.outputs = []  # None: what it gives is no new value

    def again(self, tensor_of):
        """Makes the outputs again, as a tuple."""
        args, kwargs = _filled(self.args, tensor_of), _filled(self.kwargs, tensor_of)
        if self.rng is None:
            made = self.func(*args, **kwargs)
        else:
            with _RandomNumbers(self.rng):
                made = self.func(*args, **kwargs)
        return made if isinstance(made, (tuple, list)) else (made,)


def _filled(given, tensor_of):
    if isinstance(given, Value):
        return tensor_of(given)
    if type(given) in (list, tuple):
        return type(given)(_filled(each, tensor_of) for each in given)
    if type(given) is dict:
        return {name: _filled(each, tensor_of) for name, each in given.items()}
    return given


class _RandomNumbers:
    """Random numbers begin at a state that was noted, and go on as before afterwards."""

    def __init__(self, state):
        self.device, self.state = state

    def __enter__(self):
        self.before = random_state(self.device)[1]
        _set_random_state(self.device, self.state)

    def __exit__(self, *_):
        _set_random_state(self.device, self.before)


def random_state(device):
    is_cuda = device.type == "cuda"
    return device, torch.cuda.get_rng_state(device) if is_cuda else torch.get_rng_state()


def _set_random_state(device, state):
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


@functools.cache
def _nothing(dtype, device):
    return torch.empty(0, dtype=dtype, device=device)


def _version_of(tensor):
    """A tensor without memory that counts the changes of this one."""
    counter = tensor.detach()
    counter.data = _nothing(tensor.dtype, tensor.device)
    return counter


class Saved:
    """Stands in autograd's graph for a tensor that a backward reads."""

    __slots__ = ("__weakref__", "closure", "counter", "is_made", "place", "run", "value", "version")

    def __init__(self, run, value, tensor):
        self.run, self.value = run, value
        self.place = run.packed  # among the saved tensors of the run
        self.closure = run.closure(value)  # what it is made of
        self.counter, self.version = _version_of(tensor), tensor._version
        self.is_made = False

    def __del__(self):
        self.run.release(self)


class Policy:
    """Says what a run does with its values, which have the same numbers in each run of a block. `fates` says
    which are kept or offloaded; others are made again. `calls` are the ops of the run that it was made for.
    When the backward takes its saved tensor number `fetch_at`, the run before begins to fetch."""

    def __init__(self, fates, calls, fetch_at=0):
        self.fates, self.calls, self.fetch_at = fates, calls, fetch_at
        self.closures = {}


class Recorder(TorchDispatchMode):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = facts(func)
        if known.written:
            self.run.before_write(known, args, kwargs)
        rng = None
        if known.random and known.draws(args, kwargs):
            device = next((each.device for each in args if isinstance(each, torch.Tensor)), None)
            rng = random_state(device) if device is not None else None
        out = func(*args, **kwargs)
        self.run.record(func, known, args, kwargs, out, rng)
        return out


class Run:
    """One forward of one block, until its backward is over. `free` are tensors that others hold anyhow,
    `before` is the run before it, whose offloaded tensors the device gives up when this one ends.
    `observer` is told of calls and of what the backward takes."""

    def __init__(self, policy, copies, free=(), before=None, observer=None, name="block"):
        self.policy, self.copies, self.observer, self.name = policy, copies, observer, name
        self.values, self.calls, self.saved = [], [], weakref.WeakSet()
        self.before = weakref.ref(before) if before is not None else lambda: None
        self.is_strange = False  # it makes other calls than the run that the policy is of
        self.packed = self.taken = 0
        self.fetch_at = policy.fetch_at if policy else 0
        self.is_open = True
        self.began, self.on_backward = False, None  # its backward has begun; what is called when it does
        self.fates = policy.fates if policy else {}
        self._free = {each.untyped_storage()._cdata for each in free if type(each) in _PLAIN}
        self._known, self._alive, self._of_storage = {}, [], {}
        self._leaving = []

    # ---- while the forward runs

    def value_of(self, tensor):
        """The value that a tensor is; a new one where no call made it."""
        if not _is_plain(tensor):
            return self._outside(tensor, None)
        key = _key(tensor)
        found = self._known.get(key)
        return found if found is not None else self._outside(tensor, key)

    def _outside(self, tensor, key):
        value = self._new(None, 0)
        is_leaf = tensor.is_leaf and tensor.requires_grad
        with _no_dispatch():
            # A parameter may get other memory meanwhile (sharding does so): it is held itself.
            value.tensor = tensor if is_leaf or key is None else tensor.detach()
            if key is not None:
                value.version = (_version_of(tensor), tensor._version)
        value.is_free = is_leaf or key is None or key[0] in self._free
        if not value.is_free:
            value.bytes, value.is_dense = tensor.untyped_storage().nbytes(), _is_dense(tensor)
        if key is not None:
            self._note(key, value, tensor)
        self._begin(value)
        return value

    def _new(self, call, place):
        value = Value(len(self.values), call, place)
        self.values.append(value)
        return value

    def _note(self, key, value, tensor):
        self._known[key] = value
        keys = self._of_storage.get(key[0])
        if keys is None:
            # The reference keeps the number of the memory from being given to another.
            self._alive.append((StorageWeakRef(tensor.untyped_storage()), value))
            self._of_storage[key[0]] = keys = []
        keys.append(key)

    def before_write(self, known, args, kwargs):
        """An op is about to write into memory of these values: copies of it must have ended."""
        for tensor in known.targets(args, kwargs):
            for key in self._of_storage.get(tensor.untyped_storage()._cdata, ()):
                value = self._known.get(key)
                if value is not None and value.leaving is not None:
                    self.copies.wait(value.leaving)

    def record(self, func, known, args, kwargs, out, rng):
        index = len(self.calls)
        policy = self.policy
        if policy and not self.is_strange and (index >= len(policy.calls) or policy.calls[index] is not func):
            self.is_strange = True
        inputs = []
        call = Call(func, self._taken(args, inputs), self._taken(kwargs, inputs), inputs, rng)
        self.calls.append(call)
        if known.written:
            for tensor in known.targets(args, kwargs):
                self._forget(tensor)
        elif inputs and not known.maker:
            self._outputs(index, call, inputs, out)
        if self.observer:
            self.observer.called(self, index)

    def _taken(self, given, inputs):
        if isinstance(given, torch.Tensor):
            value = self.value_of(given)
            inputs.append(value)
            return value
        if type(given) in (list, tuple):
            return [self._taken(each, inputs) for each in given]
        if type(given) is dict:
            return {name: self._taken(each, inputs) for name, each in given.items()}
        return given

    def _outputs(self, index, call, inputs, out):
        for place, tensor in enumerate(out if isinstance(out, (tuple, list)) else (out,)):
            if not _is_plain(tensor):
                call.outputs.append(None)
                continue
            key = _key(tensor)
            if key in self._known:
                call.outputs.append(None)  # a value that there is: the same memory and shape
                continue
            value = self._new(index, place)
            if key[0] not in self._of_storage:
                value.bytes, value.is_dense = tensor.untyped_storage().nbytes(), _is_dense(tensor)
            self._note(key, value, tensor)
            call.outputs.append(value)
            if value.index in self.fates and not self.is_strange:
                with _no_dispatch():
                    value.tensor = tensor.detach()
                    value.version = (_version_of(tensor), tensor._version)
                self._begin(value)

    def _forget(self, tensor):
        """After a write the memory is no value that a call made, and what read it before cannot read it
        again."""
        for key in self._of_storage.get(tensor.untyped_storage()._cdata, ()):
            value = self._known.pop(key, None)
            if value is not None:
                value.is_changed = True

    def _begin(self, value):
        """Starts to copy a value to the host, if that is its fate."""
        if self.fates.get(value.index) != OFFLOAD or self.is_strange or not value.is_dense or value.is_free:
            return
        with _no_dispatch():
            value.piece, value.leaving = self.copies.out(value.tensor)
        value.like = (value.tensor.size(), value.tensor.stride(), value.tensor.dtype, value.tensor.device)
        self._leaving.append(value)

    def living(self):
        """Numbers of values whose memory somebody else holds now."""
        return [value.index for memory, value in self._alive if value.tensor is None and not memory.expired()]

    def pack(self, tensor):
        """A hook of autograd: the backward will read the tensor."""
        with _no_dispatch():
            value = self.value_of(tensor)
            if value.tensor is None and (self.is_strange or self.policy is None):
                value.tensor = tensor.detach()
            saved = Saved(self, value, tensor)
        self.packed += 1
        self.saved.add(saved)
        for each in saved.closure:
            each.needs += 1
        return saved

    def closure(self, value):
        """Finds what a value is made of: itself, and what its call and the calls before that read, up to
        what is held."""
        cache = self.policy.closures if self.policy and not self.is_strange else None
        found = cache.get(value.index) if cache is not None else None
        if found is None:
            seen, todo = set(), [value]
            while todo:
                each = todo.pop()
                if each.index not in seen:
                    seen.add(each.index)
                    if not self._is_there(each):
                        todo += self.calls[each.call].inputs
            found = tuple(seen)
            if cache is not None:
                cache[value.index] = found
        return [self.values[each] for each in found]

    def _is_there(self, value):
        return value.call is None or value.tensor is not None or value.piece is not None

    def end(self):
        """The forward is over: what no backward needs goes, and so does what the run before copied to the
        host."""
        self.is_open = False
        self._known = self._alive = self._of_storage = None
        for value in self.values:
            if value.needs == 0:
                self._drop(value)
        before = self.before()
        if before is not None:
            before.leave()

    def leave(self):
        """The device gives up what was copied to the host, once the copies have ended."""
        if self.began:
            return
        for value in self._leaving:
            if value.tensor is not None and value.piece is not None:
                self.copies.wait(value.leaving)
                value.tensor = None
        self._leaving = []

    # ---- in the backward

    def unpack(self, saved):
        """A hook of autograd: the backward reads the tensor now."""
        self._check_version(saved.counter, saved.version)
        if not self.began:
            self.began = True
            if self.on_backward:
                self.on_backward()
            self.fetch()
        self.taken += 1
        if self.taken > self.fetch_at:
            before, self.fetch_at = self.before(), sys.maxsize
            if before is not None:
                before.fetch()
        if self.observer:
            self.observer.taking(self, saved)
        tensor = self._made(saved)
        if self.observer:
            self.observer.taken(self, saved)
        return tensor

    def _made(self, saved):
        value = saved.value
        with torch.no_grad(), torch._C._DisableAutocast():  # calls were noted below autocast
            tensor = self._get(value)
        if not saved.is_made:
            saved.is_made = True
            if value.tensor is None:
                value.tensor = tensor
            for each in saved.closure:
                if each is not value:
                    self._need_less(each)
        return tensor

    def fetch(self):
        """Copies on the host start on their way back."""
        for value in self.values:
            if value.piece is not None and value.needs > 0 and value.tensor is None and value.coming is None:
                value.coming = self.copies.back(value.piece, value.like, value.leaving)

    def _get(self, value):
        self._check(value)
        if value.tensor is not None:
            return value.tensor
        if value.piece is not None:
            if value.coming is None:
                value.coming = self.copies.back(value.piece, value.like, value.leaving)
            value.tensor = self.copies.arrive(value.coming)
            return value.tensor
        if value.call is None:
            raise Error(
                f"[heddle.memory] {self.name} lost a tensor that it was to hold: this is a fault of heddle"
            )
        call = self.calls[value.call]
        made = call.again(self._get)
        for output in call.outputs:
            if output is not None and output.needs > 0 and output.tensor is None and output.piece is None:
                output.tensor = made[output.place]
        return made[value.place]

    def _check(self, value):
        if value.version is not None:
            self._check_version(*value.version)

    def _check_version(self, counter, version):
        if counter._version != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: [heddle.memory] a tensor of {self.name} is at version {counter._version}; "
                f"expected version {version}"
            )

    def release(self, saved):
        """Autograd has no more use for a saved tensor."""
        for each in [saved.value] if saved.is_made else saved.closure:
            self._need_less(each)
        if self.observer:
            self.observer.released(self, saved)

    def _need_less(self, value):
        value.needs -= 1
        if value.needs == 0 and not self.is_open:
            self._drop(value)

    def _drop(self, value):
        if value.piece is not None:
            self.copies.give_back(value.piece, value.leaving, value.coming)
            value.piece = value.coming = None
        value.tensor = None


def _is_plain(tensor):
    return type(tensor) in _PLAIN and tensor.layout == torch.strided and not tensor.dtype.is_complex


def _key(tensor):
    return (
        tensor.untyped_storage()._cdata,
        tensor.storage_offset(),
        tensor.size(),
        tensor.stride(),
        tensor.dtype,
    )


def _is_dense(tensor):
    """It fills all of its memory, without gaps: it can be copied as one piece."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes() and (
        torch.ops.aten.is_non_overlapping_and_dense(tensor)
    )
