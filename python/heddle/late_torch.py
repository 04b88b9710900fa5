"""Where torch is imported after heddle.ops: heddle's ops are registered as soon as it is there."""

import sys

_register = None  # a function that registers the ops with torch (`set_registration`)


def set_registration(function):
    """`function` registers heddle's ops with torch. The package hands it in, as it knows heddle.torch."""
    global _register
    _register = function


class _Finder:
    """Finds torch as the other finders do, with a loader that registers the ops after it."""

    def __init__(self):
        self.is_asking = False  # the other finders

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.is_asking:
            return None
        import importlib.util  # not before it is needed: importing heddle is short

        self.is_asking = True
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            self.is_asking = False
        # A namespace, which a folder of that name is, has no loader that runs anything.
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader:
    """The loader of torch; its module does not keep this one."""

    def __init__(self, own, finder):
        self._own = own
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._own, name)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._own
        self._own.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        register()


def register():
    """Registers the ops with torch, which is there. An import of torch does not end for a fault of heddle."""
    try:
        _register()
    except Exception as error:
        import warnings

        warnings.warn(
            f"heddle's ops are not registered with torch; torch.compile and gradients refuse them: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def follow_torch():
    """Registers the ops now where torch is imported, or else when it comes."""
    if "torch" in sys.modules:
        _register()
    elif not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
