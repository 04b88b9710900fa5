#!/usr/bin/env python3
"""Checks includes: a folder includes only lower layers; families of ops, schedulers and backends include no
sibling. Rooms of python/heddle import only lower ones, inside of functions too.

The tables below are the architecture; changing them is a visible act.

"""

import re

import measure
import python_modules

LAYERS = {
    "heddle/base": 0,
    "heddle/tile": 1,
    "heddle/ir": 1,
    "heddle/kit": 1.5,
    "heddle/trace": 2,
    "heddle/ops": 2,
    "heddle/schedule": 3,
    "heddle/tune": 3,
    "heddle/backend": 4,
    "heddle/engine": 5,
    "heddle/model": 6,
    "heddle/text": 6,
    "heddle/session": 7,
    "heddle/serve": 7.5,
    "apps": 8,
    "python": 8,
}
# Rooms of a backend. A room includes only lower rooms, so those of one floor do not know each other. Its
# entry file and its tests see all of them. Host code reads device/ and arch/ for what both sides share.
ROOMS = {
    "heddle/backend/cuda/runtime": 0,
    "heddle/backend/cuda/compiler": 0,
    "heddle/backend/cuda/program": 1,
    "heddle/backend/cuda/executors": 2,
}
# Rooms and modules of python/heddle. `heddle` is the package itself, with the names that users have. Commands
# stand on it, as a user's script does.
PYTHON_LAYERS = {
    "heddle.display": 0,
    "heddle.errors": 0,
    "heddle.late_torch": 0,
    "heddle.version": 0,
    "heddle.paths": 1,
    "heddle.progress": 1,
    "heddle.ranges": 1,
    "heddle.scheduling": 1,
    "heddle.model": 2,
    "heddle.ops": 2,
    "heddle.settings": 2,
    "heddle.megakernel": 3,
    "heddle.own": 4,
    "heddle.commands": 5,
    "heddle.torch": 5,
    "heddle.buckets": 6,
    "heddle.distributed": 6,
    "heddle.env": 6,
    "heddle.flex": 6,
    "heddle.float8": 6,
    "heddle.memory": 6,
    "heddle.moe": 6,
    "heddle.optim": 6,
    "heddle.power": 6,
    "heddle.parallel": 6.1,
    "heddle.segments": 6.25,
    "heddle.quant": 6,
    "heddle.sparse": 6,
    "heddle.patching": 6.25,
    "heddle.attention": 6.5,
    "heddle.explain": 6.5,
    "heddle.hardware": 6.5,
    "heddle.kernelpytorch": 6.75,
    "heddle": 7,
    "heddle.__main__": 8,
    "heddle.bench": 8,
    "heddle.check": 8,
    "heddle.demos": 8,
    "heddle.layout": 8,
    "heddle.package": 8,
    "heddle.tile_language": 8,
    "heddle.tune": 8,
    "heddle.profile": 9,
    "heddle.serve": 9,
}
ANYTHING = ("tests", "bench", "examples")  # these cross folders on purpose
SEES_OPS = ("heddle/model", "tests")
SEES_BACKENDS = ("heddle/backend", "python")  # others reach them through the registry
# Device headers that NVRTC reads at no cost. Only the files below include the rest of the toolkit, which is
# CuTe's.
DEVICE_HEADERS = {"cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "mma.h"}
ARCHITECTURE = re.compile(r"heddle/(?:kit|backend/\w+)/arch/|\.sm\d+\.cuh$")
# Bodies of ops ask Team and Kernel for these (backend/cuda/device/team.cuh).
FRAME = re.compile(
    r"arch::thread\b|threadIdx|blockDim|__(?:shfl|ballot|sync)\w*|\bsync_consumers\b"
    r"|\bk(?:Consumers|Warps|FewRows|ManyRows|OneOp|Known|Uses|ScratchBytes)\b"
)
ASSEMBLY = re.compile(r"^[^/\"]*\basm\b")
WHOLE_KERNEL = re.compile(r"_kernel\.sm\d+\.cuh$")  # these have threads of their own
CHIP_PLACE = re.compile(r"\bchip\(\)(?! \+ \(?kBudget\.offset\()")
LAMBDA_REQUIRED = re.compile(r"\brequires\b[^;{]*\{[^}]*\[[^\]\w]*\]\s*\(")
# Libraries whose headers take seconds to compile: {header: who includes it, the header for all others}.
WRAPPED = {
    "nlohmann/": ("heddle/base/json.cpp", "heddle/base/json.h"),
    "CLI/": ("apps/", "apps/heddle/support/command.h"),
}
CUDA_HEADER = re.compile(r"(cuda|nvrtc|cudnn|cublas|cute/|cutlass/)")


def unit(path):
    """The layer folder a file belongs to: heddle/ops/add/add.h -> heddle/ops, apps/heddle/a.cpp -> apps."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "heddle" else parts[0]


def member(path):
    """The family of ops or the backend that a file belongs to, or None for files that siblings share."""
    parts = path.split("/")
    if path.startswith(("heddle/ops/", "heddle/backend/")) and len(parts) > 3:
        return parts[2]
    return None


def wrong_room(path, target):
    here, there = path.rsplit("/", 1)[0], target.rsplit("/", 1)[0]
    if here == there or here not in ROOMS or there not in ROOMS or path.endswith("_test.cpp"):
        return None
    return None if ROOMS[here] > ROOMS[there] else f"{here} includes {there}, which is not below it"


def is_policy(path, paths):
    """A header of the schedule folder with a source file of the same name belongs to a policy, except the
    interface."""
    folder, stem = path.rsplit(".", 1)[0].rsplit("/", 1)
    return folder == "heddle/schedule" and stem != "schedule" and f"{folder}/{stem}.cpp" in paths


def is_device(path):
    """NVRTC compiles these too, so they may include no standard header."""
    return path.endswith(".cuh") or (path.startswith("heddle/tile/") and path.endswith(".h"))


def unit_is_cuda(path):
    return path.startswith("heddle/backend/cuda/")


def wrong_include(path, target, paths):
    here, there = unit(path), unit(target)
    if here in ANYTHING:
        return None
    if there not in LAYERS:
        return f"{there}/ is no layer that can be included"
    if here not in LAYERS:
        return f"{here}/ has no layer; give it one in tools/check_layers.py"
    if member(target) and there == "heddle/ops" and here not in SEES_OPS and member(path) != member(target):
        return "only model/, tests and the op's family include an op's headers"
    if here == there:
        if member(path) and member(target) and member(path) != member(target):
            return f"{member(path)} includes its sibling {member(target)}"
        if wrong_room(path, target):
            return wrong_room(path, target)
        own = path.rsplit(".", 1)[0].removesuffix("_test") == target.rsplit(".", 1)[0]
        if is_policy(target, paths) and not own and not path.endswith("_test.cpp"):
            return "a policy includes its sibling"
        return None
    if there == "heddle/backend" and here not in SEES_BACKENDS:
        return "backends are reached through their registry, ir/executor/executor.h"
    if LAYERS[here] > LAYERS[there]:
        return None
    return f"layer {LAYERS[here]} includes layer {LAYERS[there]}"


def wrapper_of(path, target):
    """The header that a file must include in place of a library's; None if it may include that."""
    for header, (place, wrapper) in WRAPPED.items():
        if target.startswith(header) and not path.startswith(place):
            return wrapper
    return None


def include_violations(path, found, paths):
    for include in found:
        where = f"{path}:{include.line}: {include.target}"
        inside = include.target.split("/")[0] in ("heddle", *ANYTHING, "apps", "python")
        if include.quoted and not inside and include.target.endswith(".inc"):
            if not path.startswith("heddle/backend/"):
                yield f"{where}: only backends include the generated lists of ops"
        elif include.quoted and not inside:
            yield f"{where}: written from the repository root, an include begins with heddle/"
        elif inside and not include.quoted:
            yield f"{where}: heddle's own headers stand in quotes"
        elif inside:
            reason = wrong_include(path, include.target, paths)
            if reason:
                yield f"{where}: {reason}"
        elif wrapper := wrapper_of(path, include.target):
            yield f"{where}: include {wrapper}, which wraps it"
        elif CUDA_HEADER.match(include.target) and not (unit_is_cuda(path) or is_device(path)):
            yield f"{where}: no CUDA type above backend/cuda"


def standard_header_chains(path, all_includes, chain=(), seen=None):
    """Include paths from a device file to a standard header, each as a list of files."""
    seen = set() if seen is None else seen
    seen.add(path)
    for include in all_includes[path]:
        if include.quoted:
            if include.target in all_includes and include.target not in seen:
                yield from standard_header_chains(include.target, all_includes, (*chain, path), seen)
        elif include.target not in DEVICE_HEADERS and not ARCHITECTURE.search(path):
            yield [*chain, f"{path}:{include.line}", f"<{include.target}>"]


def wrong_import(module, target):
    here, there = (".".join(name.split(".")[:2]) for name in (module, target))
    if here == there:
        return None
    if here not in PYTHON_LAYERS:
        return f"{here} has no layer; give it one in tools/check_layers.py"
    if there not in PYTHON_LAYERS:
        return f"{there} has no layer"
    if PYTHON_LAYERS[here] > PYTHON_LAYERS[there]:
        return None
    return f"layer {PYTHON_LAYERS[here]} imports layer {PYTHON_LAYERS[there]}"


def import_violations(root):
    paths = python_modules.modules(root)
    for module, found in python_modules.imports(root).items():
        for line, target in found:
            if reason := wrong_import(module, target):
                yield f"{paths[module]}:{line}: {target}: {reason}"


def violations(root):
    paths = set(measure.files(root, measure.CPP))
    texts = {path: measure.read(root, path) for path in sorted(paths)}
    all_includes = {path: measure.includes(text) for path, text in texts.items()}
    wrong = []
    for path, text in texts.items():
        wrong += include_violations(path, all_includes[path], paths)
        if is_device(path):
            wrong += [
                f"a device file sees a standard header: {' -> '.join(c)}"
                for c in standard_header_chains(path, all_includes)
            ]
        if path.startswith("heddle/ops/") and not WHOLE_KERNEL.search(path):
            wrong += [
                f"{path}:{number}: {found[0]}: a body asks Team or Kernel (backend/cuda/device/team.cuh)"
                for number, line in enumerate(text.splitlines(), 1)
                if (found := FRAME.search(line))
            ]
        if WHOLE_KERNEL.search(path) and "#pragma once" not in text:
            wrong.append(f"{path}: a whole kernel includes what it uses, and begins with #pragma once")
        if WHOLE_KERNEL.search(path):
            wrong += [
                f"{path}:{number}: chip() + kBudget.offset(...): the plan reads the budget, too"
                for number, line in enumerate(text.splitlines(), 1)
                if CHIP_PLACE.search(line)
            ]
        if path.startswith("heddle/tile/"):
            wrong += [
                f"{path}:{i.line}: {i.target}: tile/ includes only tile/ and base/"
                for i in all_includes[path]
                if i.quoted and unit(i.target) not in ("heddle/tile", "heddle/base")
            ]
        if is_device(path) and LAMBDA_REQUIRED.search(text):
            wrong.append(f"{path}: a lambda in a requires expression, which NVRTC takes for a failure")
        if is_device(path) and not re.match(r"heddle/(?:kit|backend/\w+)/arch/", path):
            wrong += [
                f"{path}:{number}: asm stands only in kit/arch"
                for number, line in enumerate(text.splitlines(), 1)
                if ASSEMBLY.search(line) and path.startswith("heddle/")
            ]
        if "__CUDA_ARCH__" in text and not re.match(r"heddle/(?:kit|backend/\w+)/arch/", path):
            wrong.append(f"{path}: __CUDA_ARCH__ stands only in kit/arch and backend/*/arch")
    if any(path.endswith(".cu") for path in measure.files(root, (".cu",), ("heddle",))):
        wrong.append("heddle/ has a .cu file; device sources are headers")
    wrong += import_violations(root)
    return wrong, f"{len(paths)} files"


if __name__ == "__main__":
    measure.run("layers", violations)
