"""A node of torch's autograd in C++ (node.cpp), so that a gradient goes through no code of Python.

It is compiled once for a version of torch, by a C++ compiler of the machine, in the background: after a
thousand calls with a gradient, so that short scripts compile nothing. Later processes load it at their first
such call. HEDDLE_NODE=off uses none. HEDDLE_NODE=now compiles at the first call and waits for it, as
`python -m heddle.torch.node` does. Where there is none, an autograd.Function of Python computes the same; the
logger "heddle" says why, and `heddle.last_path().gradient` which of them a call has.
"""

import atexit
import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sysconfig
import threading
from pathlib import Path

import torch

from heddle import _heddle
from heddle.errors import CompileError, CompilerMissing, Error, InvalidArgument, first_error
from heddle.own.body import compiler
from heddle.progress import LOGGER, teller

VARIABLE = "HEDDLE_NODE"
CHOICES = ("background", "now", "off")
FOLDER = Path(__file__).parent
FLAGS = ("-std=c++20", "-O1", "-DNDEBUG", "-fPIC", "-shared", "-w")
LIBRARIES = ("-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10")
SECONDS = 30  # about, on one core of a server of 2024
WAITS = "in Python; the node in C++ is compiled after a thousand calls"
_state = {"text": WAITS}
_lock = threading.Lock()


def choice():
    """When the node is compiled, as HEDDLE_NODE says."""
    given = os.environ.get(VARIABLE) or CHOICES[0]
    if given not in CHOICES:
        raise InvalidArgument(f"[autograd node] {VARIABLE} is {given!r}; must be one of {', '.join(CHOICES)}")
    return given


def state():
    """Describes the state in a few words."""
    return _state["text"]


@functools.cache
def library():
    """The path that the library has once it is compiled."""
    sources = [(FOLDER / name).read_text() for name in ("node.cpp", "node.h")]
    built_for = (torch.__version__, torch.version.git_version, sysconfig.get_config_var("SOABI"))
    digest = hashlib.sha256("\0".join(map(str, (*built_for, *FLAGS, *sources))).encode()).hexdigest()[:16]
    return Path(_heddle.cache_folder()) / "nodes" / f"torch-{torch.__version__}-{digest}.so"


def _command(target):
    command = compiler()
    if command is None:
        raise CompilerMissing("[autograd node] no C++ compiler is here: install g++, or set HEDDLE_CXX")
    root, include = Path(torch.__file__).parent, sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").exists():
        raise CompileError(f"[autograd node] {include} has no Python.h: install the headers of this Python")
    headers = (root / "include", root / "include" / "torch" / "csrc" / "api" / "include", include)
    return [
        *command,
        *FLAGS,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(part for folder in headers for part in ("-isystem", str(folder))),
        *("-include", str(FOLDER / "node.h"), str(FOLDER / "node.cpp")),
        "-o",
        str(target),
        f"-L{root / 'lib'}",
        *LIBRARIES,
    ]


def _run(command, tell):
    """Compiles with a low priority. A process that ends takes its compiler along."""
    nice = ["nice", "-n", "10"] if shutil.which("nice") else []
    process = subprocess.Popen(
        [*nice, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    atexit.register(process.kill)
    try:
        text = f"compiling the autograd node for torch {torch.__version__}, once (about {SECONDS} s)"
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                log = process.communicate(timeout=0.5)[1]
                break
            if tell:
                tell("compiling", "libraries", 0, 1, text)
    finally:
        process.kill()
        atexit.unregister(process.kill)
        if tell:
            tell("compiling", "libraries", 1, 1, "")
    if process.returncode != 0:
        found = first_error(log, "")
        what = f"{found[0]}:{found[1]}: {found[2]}" if found else log.strip()[-500:]
        raise CompileError(f"[autograd node] it did not compile for torch {torch.__version__}: {what}", log)


def build(progress=None):
    """Compiles the library if nobody did yet; its path. Raises Error, or OSError where nothing can be
    written."""
    target = library()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes wait, and find it
        if not target.exists():
            made = target.with_suffix(".part")
            _run(_command(made), teller(progress))
            os.replace(made, target)  # whole, or not there
    return target


def _build_and_load(progress=None):
    with _lock:
        if state() != WAITS:  # another thread was first
            return
        try:
            _state["text"] = "being compiled; in Python until then"
            path = build(progress)
            _heddle.load_node(str(path))
            _state["text"] = f"in C++ for torch {torch.__version__}, {path}"
            LOGGER.info("[autograd node] gradients go through %s", path)
        except (Error, OSError) as error:
            _state["text"] = f"in Python: {error}"
            LOGGER.warning("%s; gradients go through Python, which takes some 10 us a call more", error)


@functools.cache
def find():
    """Loads the library if it is there. _heddle calls it at the first call with a gradient."""
    chosen = choice()
    if chosen == "off":
        _state["text"] = f"in Python: {VARIABLE}=off"
        LOGGER.info("[autograd node] %s=off; gradients go through Python", VARIABLE)
        return
    with contextlib.suppress(Error, OSError):  # to compile it says what is wrong
        if library().exists():
            return _build_and_load()
    if chosen == "now":
        _build_and_load()


def prepare(progress=None):
    """Compiles the library if nobody did yet, and loads it, unless HEDDLE_NODE is off; what there is then.
    Waits for another thread that compiles it."""
    find()
    if state() == WAITS:
        _build_and_load(progress)
    with _lock:
        return state()


def start():
    """Begins to compile the library in the background. _heddle calls it after a thousand calls."""
    if choice() == "off" or state() != WAITS:
        return
    text = "[autograd node] compiling it for torch %s in the background, once; %s=off leaves it out"
    LOGGER.info(text, torch.__version__, VARIABLE)
    threading.Thread(target=_build_and_load, args=(False,), name="heddle node", daemon=True).start()


def main():
    print(build(progress=True))


if __name__ == "__main__":
    main()
