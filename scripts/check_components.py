"""Checks on an H100 that instructions do what heddle/tile says: which thread and register holds which
element (mma.sync, wgmma, ldmatrix, stmatrix), what wgmma's descriptors reach, where tensor copies put
elements, what plans of copies and sums make.

usage: check_components.py compile FOLDER   anywhere: NVRTC compiles tests/toolkit/components.cuh
       check_components.py run FOLDER       on a machine with an H100 and torch
"""

import ctypes
import dataclasses
import itertools
import pathlib
import re
import sys

import device_kernel

ROOT = pathlib.Path(__file__).resolve().parents[1]

TERMS = {
    "bf16": ("kBf16", 2),
    "f16": ("kF16", 2),
    "tf32": ("kTf32", 4),
    "e4m3": ("kE4m3", 1),
    "e5m2": ("kE5m2", 1),
    "e4m3e5m2": ("kE4m3E5m2", 1),
    "e5m2e4m3": ("kE5m2E4m3", 1),
}
SIDES = {"e4m3e5m2": ("e4m3", "e5m2"), "e5m2e4m3": ("e5m2", "e4m3")}  # where they differ
SHARED = 200 * 1024


@dataclasses.dataclass
class Component:
    file: str  # the cubin it is in
    name: str
    call: str  # its kernel's statement
    threads: int
    check: object  # run(launch) -> "" or what is wrong
    box: tuple = ()  # the tensor map's: span in bytes, lines
    planted: bool = False  # a fault that the check must find


def product(name, terms, rows, cols, depth, call, threads):
    return Component(name.split("_")[0], name, call, threads, ("product", terms, rows, cols, depth))


def components():
    """All cases; nothing here needs torch."""
    found = []
    for kind in ("load", "store"):
        for transposed in ("false", "true"):
            found.append(
                Component(
                    "matrices",
                    f"{kind}_{transposed}",
                    f"{kind}_matrices_case<{transposed}>(args);",
                    32,
                    ("pairs",),
                )
            )
    for terms, (enum, size) in TERMS.items():
        call = f"warp_product_case<arch::Terms::{enum}, {size}>(args);"
        found.append(product(f"warp_{terms}", terms, 64, 48, 64 // size, call, 128))
    found += group_products()
    found += copies()
    found += planted()
    for who in ("mma_sums()", "wgmma_sums(64)", "mma_left(2)", "matrices(4)", "matrices_transposed(4)"):
        threads = 128 if "wgmma" in who else 32
        for over in ("kColumns", "kRows") if threads == 32 else ("kColumns",):
            call = f"reduce_case<tile::{who}, tile::Over::{over}>(args);"
            name = f"reduce_{over}_{who.translate(str.maketrans('()', '__'))}"
            found.append(Component("reduce", name, call, threads, ("sums", who, over)))
    return found


def planted():
    """Faults: a distribution, a descriptor and a tensor map that are not those of the instruction."""
    tile = "OperandTile{64, 64, 2, tile::Major::kK, 64}"
    plan = f"constexpr CopyPlan kPlan = tile::copy_rows(64, 64, 2, 128, {tile}.layout(), {tile}.swizzle());"
    descriptor = (
        "group_product_case<arch::Terms::kBf16, 2, tile::From::kChip, tile::Major::kK, tile::Major::kK, "
        "64, 64, 128>(args);"
    )
    return [
        Component(
            "planted", "planted_matrices", "load_matrices_case<false, true>(args);", 32, ("pairs",), (), True
        ),
        dataclasses.replace(product("planted", "bf16", 64, 64, 64, descriptor, 128), planted=True),
        Component(
            "planted",
            "planted_box",
            f"{plan} box_case<kPlan>(args, &map);",
            128,
            ("copy", 64, 64, 64, 64),
            (64, 64),
            True,
        ),
    ]


def tutorial():
    """The kernel of docs/kernels.md, in what heddle writes around that of an op."""
    page = (ROOT / "docs/kernels.md").read_text()
    code = "\n".join(re.findall(r"^```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    return (
        '#include "heddle/ir/tensor.h"\nnamespace heddle { struct Args { Tensor left, right, y; }; }\n'
        f'{code}extern "C" __global__ void __launch_bounds__(128) sums_of_rows('
        "const __grid_constant__ Args args) { Kernel<int>::run(args, nullptr, nullptr); }\n"
    )


def group_products():
    """Products of wgmma: every source, major, span and type with 64 columns, and bf16 with other widths."""
    found = []
    cases = itertools.product(
        TERMS,
        ("kChip", "kRegisters"),
        ("kK", "kOuter"),
        ("kK", "kOuter"),
        (128, 64, 32, 16),
        (8, 64, 176, 256),
    )
    for terms, source, left, right, span, n in cases:
        enum, size = TERMS[terms]
        exists = (size == 2 or "kOuter" not in (left, right)) and (source, left) != ("kRegisters", "kOuter")
        exists &= right == "kK" or n % (span // size) == 0
        if not exists or (terms != "bf16" and n != 64) or (n in (8, 176) and span != 128):
            continue
        depth = (256 if span == 128 else 128) // size
        call = (
            f"group_product_case<arch::Terms::{enum}, {size}, tile::From::{source}, "
            f"tile::Major::{left}, tile::Major::{right}, {span}, {n}>(args);"
        )
        name = f"group{terms}{source[1]}_{left}_{right}_{span}_{n}"
        found.append(product(name, terms, 64, n, depth, call, 128))
    return found


def copies():
    found = []
    for span in (128, 64, 32, 16):
        for rows, cols in ((64, 64), (128, 128), (8, 64)):
            tile = f"OperandTile{{{rows}, {cols}, 2, tile::Major::kK, {span}}}"
            plan = f"tile::copy_rows({rows}, {cols}, 2, 128, {tile}.layout(), {tile}.swizzle())"
            for tail in (0, 5):
                found.append(
                    Component(
                        "boxes",
                        f"box_{span}_{rows}_{cols}_{tail}",
                        f"constexpr CopyPlan kPlan = {plan}; box_case<kPlan>(args, &map);",
                        128,
                        ("copy", rows, cols, rows - tail, cols - tail),
                        (span, rows),
                    )
                )
    plans = {
        "swizzled": (64, 64, "tile::copy_rows(64, 64, 2, 128, {0}.layout(), {0}.swizzle())", 8),
        "threads_96": (64, 64, "tile::copy_rows(64, 64, 2, 96, {0}.layout(), {0}.swizzle())", 8),
        "turned": (64, 64, "tile::copy_rows(64, 64, 2, 128, tile::by_columns(64, 64))", 1),
        "odd_pitch": (
            64,
            64,
            "tile::copy_rows(64, 64, 2, 128, {0}.layout(), {0}.swizzle()).aligned(2, 2)",
            1,
        ),
    }
    for name, (rows, cols, plan, width) in plans.items():
        tile = f"OperandTile{{{rows}, {cols}, 2, tile::Major::kK, 128}}"
        threads = 96 if "96" in name else 128
        for tail in (0, 5):
            found.append(
                Component(
                    "copies",
                    f"copy_{name}_{tail}",
                    f"constexpr CopyPlan kPlan = {plan.format(tile)}; "
                    f"static_assert(kPlan.width() == {width}); copy_case<kPlan>(args);",
                    threads,
                    ("copy", rows, cols, rows - tail, cols - tail),
                )
            )
    return found


def files():
    grouped = {}
    for component in components():
        grouped.setdefault(component.file, []).append(component)
    return grouped


def write_cubin(folder, file, text):
    cubin, log = device_kernel.compile_text(text)
    if not cubin:
        sys.exit(f"{file} does not compile:\n{log}")
    (folder / f"{file}.cubin").write_bytes(cubin)
    print(f"{file}: {text.count('__global__')} kernels, {len(cubin) >> 10} KB")


def compile_all(folder):
    folder.mkdir(parents=True, exist_ok=True)
    write_cubin(folder, "tutorial", tutorial())
    for file, members in files().items():
        text = '#include "tests/toolkit/components.cuh"\nusing namespace heddle;\n'
        text += "using namespace heddle::device;\n"
        for component in members:
            text += (
                f'extern "C" __global__ void __launch_bounds__({component.threads}) {component.name}'
                "(const __grid_constant__ ComponentArgs args, const __grid_constant__ TensorMap map) {\n"
                f"  {component.call}\n}}\n"
            )
        write_cubin(folder, file, text)


class Args(ctypes.Structure):
    _fields_ = [
        ("left", ctypes.c_uint64),
        ("right", ctypes.c_uint64),
        ("out", ctypes.c_uint64),
        ("pitch_bytes", ctypes.c_int64),
        ("rows", ctypes.c_int32),
        ("cols", ctypes.c_int32),
    ]


class TensorArgument(ctypes.Structure):
    """heddle/ir/tensor.h"""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("buffer", ctypes.c_uint32),
        ("dtype", ctypes.c_uint8),
        ("rank", ctypes.c_uint8),
        ("reserved", ctypes.c_uint16),
        ("offset", ctypes.c_int64),
        ("size", ctypes.c_int32 * 4),
        ("stride", ctypes.c_int64 * 4),
    ]

    @classmethod
    def of(cls, tensor):
        """The kernel reads addresses, sizes and strides; dtypes are in its code."""
        made = cls(data=tensor.data_ptr(), rank=tensor.dim())
        made.size[: tensor.dim()], made.stride[: tensor.dim()] = tensor.shape, tensor.stride()
        return made


class Runner:
    def __init__(self, folder):
        import torch

        self.torch, self.folder, self.driver = torch, folder, device_kernel.Driver()
        torch.zeros(1, device="cuda")
        torch.manual_seed(1)

    def integers(self, terms, rows, cols):
        """Small integers, which every type holds and whose sums of products are exact."""
        types = {
            "bf16": self.torch.bfloat16,
            "f16": self.torch.float16,
            "tf32": self.torch.float32,
            "e4m3": self.torch.float8_e4m3fn,
            "e5m2": self.torch.float8_e5m2,
        }
        values = self.torch.randint(-4, 5, (rows, cols), device="cuda").float()
        return values, values.to(types[terms])

    def launch(self, component, left, right, out, pitch, rows, cols):
        args = Args(left.data_ptr(), right.data_ptr(), out.data_ptr(), pitch, rows, cols)
        tensor_map = bytes(128)
        if component.box:
            span, lines = component.box
            swizzle = {128: 3, 64: 2, 32: 1, 16: 0}[span] + int(component.planted)
            tensor_map = self.driver.tensor_map(
                left.data_ptr(), [cols, rows], [pitch], [span // 2, lines], swizzle
            )
        path = self.folder / f"{component.file}.cubin"
        function = self.driver.load(path, SHARED, component.name)
        self.driver.launch(function, component.threads, SHARED, [bytes(args), tensor_map])
        self.torch.cuda.synchronize()

    def check(self, component):
        """'' or what is wrong."""
        return getattr(self, component.check[0])(component, *component.check[1:])

    def tutorial(self):
        """Sums of the rows of a product, of which 50 rows and 43 columns are there."""
        torch = self.torch
        values = [torch.randint(-4, 5, (n, 64), device="cuda").to(torch.bfloat16) for n in (50, 43)]
        out = torch.full((64,), -1.0, device="cuda")
        function = self.driver.load(self.folder / "tutorial.cubin", 16384, "sums_of_rows")
        args = b"".join(bytes(TensorArgument.of(t)) for t in (*values, out[:50]))
        self.driver.launch(function, 128, 16384, [args])
        torch.cuda.synchronize()
        wanted = (values[0].float() @ values[1].float().T).sum(1)
        right = bool((out[:50] == wanted).all()) and bool((out[50:] == -1).all())
        return "" if right else f"{out[:4].tolist()}, not {wanted[:4].tolist()}"

    def pairs(self, component):
        out = self.torch.full((256, 2), -1, dtype=self.torch.int32, device="cuda")
        self.launch(component, out, out, out, 0, 0, 0)
        held, stated = out[:, 0].tolist(), out[:, 1].tolist()
        if sorted(stated) != list(range(256)):
            return f"the distribution does not cover the tile: {stated[:16]}"
        return "" if held == stated else f"held {held[:16]}, stated {stated[:16]}"

    def product(self, component, terms, rows, cols, depth):
        of_left, of_right = SIDES.get(terms, (terms, terms))
        a, left = self.integers(of_left, rows, depth)
        b, right = self.integers(of_right, cols, depth)
        out = self.torch.full((rows, cols), float("nan"), device="cuda")
        self.launch(component, left, right, out, 0, rows, cols)
        wanted = (a.double() @ b.double().T).float()
        wrong = (out != wanted).sum().item()
        return "" if wrong == 0 else f"{wrong} of {rows * cols} sums are wrong"

    def copy(self, component, rows, cols, rows_there, cols_there):
        torch = self.torch
        odd = "odd" in component.name
        pitch = cols + (3 if odd else 8)
        memory = torch.full((rows * pitch,), 0x7777, dtype=torch.int16, device="cuda")
        there = torch.zeros(rows, cols, dtype=torch.int16, device="cuda")
        there[:rows_there, :cols_there] = (
            torch.arange(1, rows_there * cols_there + 1, device="cuda")
            .reshape(rows_there, cols_there)
            .to(torch.int16)
        )
        view = memory.view(rows, pitch)
        view[:rows_there, :cols_there] = there[:rows_there, :cols_there]
        out = torch.full((rows, cols), -1, dtype=torch.int16, device="cuda")
        self.launch(component, memory, memory, out, 2 * pitch, rows_there, cols_there)
        wrong = (out != there).sum().item()
        return "" if wrong == 0 else f"{wrong} of {rows * cols} elements are elsewhere"

    def sums(self, component, who, over):
        torch = self.torch
        sizes = {"mma_sums()": (16, 8), "wgmma_sums(64)": (64, 64), "mma_left(2)": (16, 16)}
        rows, cols = sizes.get(who, (8, 32))
        out = torch.full((512, 512), float("nan"), device="cuda")
        self.launch(component, out, out, out, 0, rows, cols)
        values = torch.arange(rows * cols, device="cuda").reshape(cols, rows).T.float()
        wanted = values.sum(1 if over == "kColumns" else 0)
        for i, value in enumerate(wanted.tolist()):
            held = out[i][~out[i].isnan()]
            if held.numel() == 0 or not bool((held == value).all()):
                return f"output {i} is {held.tolist()[:4]}, not {value}"
        return ""


def run_all(folder):
    runner, wrong, all_components = Runner(folder), [], components()
    print(runner.torch.cuda.get_device_name())
    for component in all_components:
        fault = runner.check(component)
        if component.planted:
            fault = "" if fault else "the planted fault is not found"
        if fault:
            wrong.append(component.name)
            print(f"FAIL {component.name}: {fault}")
    if fault := runner.tutorial():
        wrong.append("tutorial")
        print(f"FAIL tutorial: {fault}")
    print(f"{len(all_components)} components and the tutorial's kernel, {len(wrong)} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("compile", "run"):
        sys.exit(__doc__)
    (compile_all if sys.argv[1] == "compile" else run_all)(pathlib.Path(sys.argv[2]))
