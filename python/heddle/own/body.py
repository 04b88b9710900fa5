"""Compiles the tile body of an op of one's own for the CPU, with a compiler of the machine, once a text."""

import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from heddle import _heddle
from heddle.errors import CompileError, CompilerMissing, first_error
from heddle.own import balance
from heddle.own.beside import origin, placeless
from heddle.own.kernel import guarded, hoisted, include_fault
from heddle.progress import run_told

CANDIDATES = ("c++", "g++", "clang++")
# Nothing here may change a value, so that a body gives the same bits wherever it is compiled.
FLAGS = (
    *("-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"),
    *("-fPIC", "-shared", "-fvisibility=hidden"),
)
TYPES = {"int": "i32", "float": "float", "bool": "bool", "str": "i32"}


def compiler():
    """The command of the compiler: HEDDLE_CXX, CXX, or the first of c++, g++, clang++; or None."""
    for variable in ("HEDDLE_CXX", "CXX"):
        command = shlex.split(os.environ.get(variable, ""))
        if command:
            return command if shutil.which(command[0]) else None
    return next(([path] for path in map(shutil.which, CANDIDATES) if path), None)


def require_compiler(op):
    command = compiler()
    if command is not None:
        return command
    named = next((f"{v}={os.environ[v]}" for v in ("HEDDLE_CXX", "CXX") if os.environ.get(v)), None)
    found = f"{named} is no program" if named else f"none of {', '.join(CANDIDATES)} is here"
    raise CompilerMissing(
        f"[{op}] its body needs a C++ compiler on this CPU, and {found}: install g++, or set HEDDLE_CXX;"
        ' its reference runs without one (backend="reference")'
    )


BODY = """struct Body {
CONSTANTS  template <class Block, class Args>
  static void run(Block& block, const Args& a, const TileCoord& t) {
    block.inputs();
TEXT  }
};
"""
CONFIGURED = "template <class Config>\n" + BODY.replace("struct Body", "struct BodyWith")
# A body is compiled for floats that are all f32, or all bf16: its loops become lane vectors. For others
# it looks at the type of each element, and so does a struct whose `run` takes Args alone.
UNIT = """#include <cstdio>

#include "heddle/backend/cpu/plain_block.h"
HEADER
namespace heddle::own {
namespace {

#include "heddle/backend/cpu/float_value.h"
#include "heddle/tile/math.cuh"

STRUCT
using Args = ArgsOf<Tensor>;
static_assert(sizeof(Args) == BYTES);
CHECKSCHOICES
BODY
template <DType kType>
bool all_are([[maybe_unused]] const Args& a) {
  return SAME;
}

template <class Some, class Block>
__attribute__((flatten)) void run_as(Block& block, const Args& any, const TileCoord& tile) {
  const Some a = reinterpret_cast<const Some&>(any);  // a copy, which no store of the body can change
  Body::run(block, a, tile);
}

template <bool kHooked>
void run(const std::byte* args, const i32* at, const AccessHook* hook) {
  static thread_local PlainBlock<kHooked> block;
  block.begin(hook);
  const Args& a = *reinterpret_cast<const Args*>(args);
  const TileCoord tile{{at[0], at[1], at[2], at[3]}};
  using F32 = ArgsOf<TensorOf<DType::kF32>>;
  using Bf16 = ArgsOf<TensorOf<DType::kBf16>>;
  if constexpr (!kHooked && requires(F32 known) { Body::run(block, known, tile); }) {
    if (all_are<DType::kF32>(a)) return run_as<F32>(block, a, tile);
    if (all_are<DType::kBf16>(a)) return run_as<Bf16>(block, a, tile);
  }
  run_as<Args>(block, a, tile);
}

}  // namespace
}  // namespace heddle::own

extern "C" __attribute__((visibility("default"))) void heddle_run(const std::byte* args, const int* tile) {
  heddle::own::run<false>(args, tile, nullptr);
}
extern "C" __attribute__((visibility("default"))) void heddle_run_hooked(
    const std::byte* args, const int* tile, const heddle::AccessHook* hook) {
  heddle::own::run<true>(args, tile, hook);
}
"""


@functools.cache
def _cpu():
    """Returns what -march=native depends on."""
    try:
        flags = next(
            line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")
        )
    except (OSError, StopIteration):
        flags = platform.processor()
    return platform.machine() + flags


def _members(declaration, tensor):
    """The members of the arguments' struct: (name, type)."""
    fields = [(name, tensor(dtypes)) for name, _, _, dtypes, _ in declaration.tensors]
    return fields + [(each.name, TYPES[each.type]) for each in declaration.attributes]


def _lines(members):
    return "".join(f"  {kind} {name};\n" for name, kind in members)


def _choices(declaration):
    return "".join(
        f"enum : i32 {{ {', '.join(f'{each.name}_{choice}' for choice in each.choices)} }};\n"
        for each in declaration.attributes
        if each.choices
    )


def _struct(declaration):
    if declaration.header:
        return f"template <class>\nusing ArgsOf = heddle::{struct_of(declaration.name)};"
    return f"template <class Float>\nstruct ArgsOf {{\n{_lines(_members(declaration, _tensor))}}};"


def struct_of(name):
    """ "rms_norm" as "RmsNorm", as heddle calls the arguments of an op."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def _header(declaration):
    text = declaration.header.replace("#pragma once", "")
    return f'#line 1 "{declaration.header_file}"\n{text}\n#line 1 "heddle"\n' if text else ""


def _body(declaration):
    body = f'#line {declaration.line} "{declaration.file}"\n{declaration.body}\n#line 1 "heddle"\n'
    if declaration.header:
        return body
    if re.search(r"\bstruct\s+Body(With)?\b", declaration.body):
        return _struct_with_configs(declaration, body)
    constants = _constants(tile_values(declaration), "Config::k{1}")
    if not constants:
        return BODY.replace("CONSTANTS", "").replace("TEXT", body)
    default = f"struct DefaultConfig {{\n{_constants(tile_values(declaration), '{2}')}}};\n"
    text = CONFIGURED.replace("CONSTANTS", constants).replace("TEXT", body)
    return f"{default}{text}using Body = BodyWith<DefaultConfig>;\n"


def _struct_with_configs(declaration, body):
    """A text that has the whole struct: a template where it wants to know the values of configurations."""
    values = tile_values(declaration)
    if not values:
        return body
    default = f"struct DefaultConfig {{\n{_constants(values, '{2}')}}};\n"
    if re.search(r"\bstruct\s+BodyWith\b", declaration.body):
        return f"{default}{body}using Body = BodyWith<DefaultConfig>;\n"
    return f"{default}{body}template <class>\nstruct BodyWith : Body {{}};\n"


def tile_values(declaration, of_kernel=False):
    """{value: number} of the first configuration of tiles, or of a whole kernel; empty: there is none."""
    known = (dict(values) for values, _ in declaration.configs)
    return next((each for each in known if bool(each.get("kernel")) == of_kernel), {})


def _constants(values, form):
    """A constant for each value of a configuration: "row_words" is kRowWords."""
    names = {name: "".join(word[:1].upper() + word[1:] for word in name.split("_")) for name in values}
    return "".join(
        f"  static constexpr i32 k{names[name]} = {form.format(name, names[name], number)};\n"
        for name, number in values.items()
    )


def unit(declaration, layout):
    """The source: the struct of the arguments as the op's fields lie, the body, and its two entries."""
    floats = [
        f"(!a.{name}.exists() || a.{name}.dtype == kType)" if optional else f"a.{name}.dtype == kType"
        for name, _, _, dtypes, optional in declaration.tensors
        if dtypes == "float"
    ]
    members = _members(declaration, _tensor)
    parts = {
        "HEADER": _header(declaration),
        "STRUCT": _struct(declaration),
        "CHECKS": "".join(
            f"static_assert(__builtin_offsetof(Args, {name}) == {layout[name]},"
            f' "{name} is a member at another place than visit names it; must be in the order of visit");\n'
            for name, _ in members
        ),
        "CHOICES": "" if declaration.header else _choices(declaration),
        "BYTES": str(layout["bytes"]),
        "SAME": " && ".join(floats) or "false",
        "BODY": _body(declaration) + (f"using {declaration.name}::Body;\n" if declaration.header else ""),
    }
    return re.sub("|".join(parts), lambda found: parts[found[0]], UNIT)


# Tells a GPU what it must know of a body that takes memory on chip.
CHIP = re.compile(r"\bblock\s*\.\s*(?:template\s+)?(scratch|product|fragment)\b")


def _why_not(declaration):
    """The text by which a device program says that it cannot have a body."""
    used, why = sorted(set(CHIP.findall(declaration.body))), ""
    if not declaration.body:
        why = "it has no tile body, and its whole kernel takes tensors that begin at multiples of 16 bytes"
    if used and not declaration.scratch:
        form = '"D"' if used == ["scratch"] else '("M, N", "M, K", "N, K")'
        why = f"its body takes block.{', block.'.join(used)}; say how many floats, as in scratch = {form}"
    place = f'#line {declaration.line} "{declaration.file}"\n' if declaration.file else ""
    return f"{place}#error {why}\n" if why else ""


def require_balanced(declaration):
    """Raises CompileError for what the author's text opens and does not close, and for what a whole kernel
    cannot include."""
    texts = [("body", declaration.body, declaration.line, declaration.file)]
    for _, text, place in declaration.kernels:
        line, _, file = place.partition(" ")
        texts.append(("kernel", text, int(line), file.strip('"')))
    for what, text, first, file in texts:
        found = balance.fault(text, first) or (include_fault(text, first) if what == "kernel" else None)
        if found:
            line, wrong = found
            file, line = origin(text, line, first, file)
            raise CompileError(f"[{declaration.name}] {file}:{line}: {wrong}, in its {what}", wrong, line)


def device_text(name, declaration, layout):
    """Returns the same for a device program, which has all bodies: the struct's name, the body's scope,
    texts."""
    require_balanced(declaration)
    if declaration.header:
        args, scope = struct_of(declaration.name), declaration.name
        header, body = _header(declaration), _body(declaration)
    else:
        args, scope = f"OwnArguments_{name}", f"own_{name}"
        members = _lines(_members(declaration, lambda dtypes: "Tensor"))
        header = (
            '#include "heddle/ir/tensor.h"\n'
            f"namespace heddle {{\nstruct {args} {{\n{members}}};\n"
            f"static_assert(sizeof({args}) == {layout['bytes']});\n}}\n"
        )
        body = _scoped(scope, args, declaration, _body(declaration))
    if not declaration.kernels:
        return args, scope, header + _why_not(declaration), body
    includes = [
        (file, f'{hoisted(text, place)[0]}#line 1 "heddle"\n') for file, text, place in declaration.kernels
    ]
    header += guarded(includes, _why_not(declaration))
    return args, scope, header, guarded(_kernel_texts(scope, args, declaration), body)


def _scoped(scope, args, declaration, text):
    return (
        f"namespace {scope} {{\nusing Args = {args};\n{_choices(declaration)}{text}}}  // namespace {scope}\n"
    )


def _kernel_texts(scope, args, declaration):
    """(file, text) of each whole kernel, in the op's namespace. One of a folder has the namespace itself."""
    for file, text, place in declaration.kernels:
        text = f'#line {place}\n{hoisted(text, place)[1]}\n#line 1 "heddle"\n'
        if not declaration.header:
            values = {k: v for k, v in tile_values(declaration, True).items() if k != "kernel"}
            if not re.search(r"\bstruct\s+KernelConfig\b", text):
                text = f"struct KernelConfig {{\n{_constants(values, '{2}')}}};\n{text}"
            text = _scoped(scope, args, declaration, text)
        yield file, text


def _tensor(dtypes):
    if dtypes == "float":
        return "Float"
    return "Tensor" if "|" in dtypes else f"TensorOf<DType::k{dtypes.capitalize()}>"


def compile_body(declaration, layout):
    """The path of the compiled body."""
    require_compiler(declaration.name)
    require_balanced(declaration)
    # Where the body stands changes its messages alone.
    same = placeless(unit(replace(declaration, file="", line=1, header_file="", kernels=()), layout))
    return compile_source(
        declaration.name, unit(declaration, layout), same, lambda log: _error(declaration, log)
    )


def compile_source(op, text, key, error_of):
    """The path of the library that a compiler makes of a text, or another process has made of the same text.

    `key`: all of the text that the code depends on. `error_of`: gives the exception for a compiler's log.
    """
    command, headers = require_compiler(op), _heddle.own_headers()
    program = shutil.which(command[0])
    parts = (
        *command,
        program,
        str(os.stat(program).st_mtime_ns),
        *FLAGS,
        _cpu(),
        key,
        *headers.values(),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    folder = Path(_heddle.cache_folder()) / "bodies"
    library = folder / f"{op}-{digest}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        work = Path(work)
        for path, header in headers.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(header)
        (work / "body.cpp").write_text(text)
        made = run_told(
            [*command, *FLAGS, "-I", str(work), str(work / "body.cpp"), "-o", str(work / "body.so")],
            f"compiling the body of {op}",
        )
        if made.returncode != 0:
            raise error_of(made.stderr.replace(f"{work}/", ""))
        os.replace(work / "body.so", library)  # whole, or not there
    return library


def _error(declaration, log):
    """Returns the compiler's words about the first line that it refuses, in the body if one is there."""
    found = first_error(log, declaration.file)
    if found is None:
        return CompileError(f"[{declaration.name}] its body did not compile:\n{log}", log)
    file, line, what = found
    return CompileError(f"[{declaration.name}] {file}:{line}: {what}", log, line)
