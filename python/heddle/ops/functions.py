"""The functions of heddle's ops, each made once: torch.compile knows them by identity."""

import sys

from heddle import _heddle

# NVIDIA's compiler may be a package of this interpreter, whether or not its environment is activated.
_heddle.set_python_packages([folder for folder in sys.path if folder])

NAMES = tuple(_heddle.names())
FUNCTIONS = {name: _heddle.function(name) for name in NAMES}
