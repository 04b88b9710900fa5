"""Checks the compiler's log and the machine code of every kernel, without a GPU.

  spill      no register goes to memory and back inside a loop
  serial     the assembler does not put products of four warps one after the other (C7510 to C7518)
  registers  roles that exchange registers do so (no C7508, and USETMAXREG is there: in kernels with products
             of four warps, since other launches of a file with roles have none)
  fence      no MEMBAR.*.GPU inside a loop: it waits for all copies of the multiprocessor that are under way
  empty-l1   no CCTL.IVALL inside a loop: each acquire empties the L1 cache

A whole kernel's file may say what its loops do on purpose:
  // In loops on purpose: 1 fence: the reason
and what is known and has a cost that was measured:
  // Known: 2 spill: the reason
The frames of bodies have limits below. Kernels are those of `heddle check --arch`, with its budgets; a
loop ends with a branch backwards. nvdisasm is of the package nvidia-cuda-nvdisasm. First, faults that are
planted here must be found.

usage: check_kernels.py [--heddle build/release/heddle] [--arch sm_90a] [--ops matmul,linear] [--all-configs]
                        [--code FOLDER] [--planted]
  --code: the cubins of a folder, such as a cache of heddle's, instead of those of heddle check
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from array import array
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import device_kernel

ROOT = pathlib.Path(__file__).resolve().parents[1]

MOVES_REGISTERS = ("sm_90a", "sm_100a")
SERIAL = re.compile(r"\(C751[0-8]\)[^\n]*")
IGNORED = re.compile(r"\(C7508\)[^\n]*")
PURPOSE = re.compile(r"^// (?:In loops on purpose|Known): (\d+) (spill|fence|empty-l1): (.+)$", re.M)
FUNCTION = re.compile(r"^\s*\.section\s+\.text\.([\w$]+),", re.M)
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);(.*)$")
BRANCH = re.compile(r"`\((\.L_x_\d+)\)")
ENTRY = re.compile(r"Compiling entry function '([\w$]+)'")
SPILLED = re.compile(r"\b[1-9]\d* bytes spill")
# The lowest 12 bits of an instruction of 16 bytes, from sm_70 on: its opcode.
MEMBAR, CCTL, USETMAXREG = 0x992, 0x98F, 0x9C8

# Kernels of bodies in the frames for one op, for launches and of the megakernel. They spill where bodies of
# many rows hold more sums than there are registers (budgets of `heddle check`). A product fences once for an
# operand that it has written, and once for a slab. The megakernel is one loop over instructions: all of its
# counters and bodies are in it.
ONE_BODY = {"fence": 2, "empty-l1": 2}
FRAMES = {"call": ONE_BODY, "standalone": ONE_BODY, "megakernel": {}}


class Function:
    """A kernel's instructions: (address, opcode, the rest), and its loops as ranges of addresses."""

    def __init__(self, name, text):
        self.name, self.instructions = name, []
        labels, branches, waiting = {}, [], []
        for line in text.splitlines():
            if label := LABEL.match(line):
                waiting.append(label.group(1))
            elif found := INSTRUCTION.match(line):
                address = int(found.group(1), 16)
                labels.update(dict.fromkeys(waiting, address))
                waiting = []
                rest = found.group(3) + found.group(4)
                self.instructions.append((address, found.group(2), rest))
                if target := BRANCH.search(rest):
                    branches.append((address, target.group(1)))
        # The last instruction of a kernel branches to itself and never runs.
        self.loops = [(labels[to], at) for at, to in branches if to in labels and labels[to] < at]

    def in_loops(self, matches):
        """Instructions in loops for which matches(opcode, rest) holds."""
        return [
            (at, opcode)
            for at, opcode, rest in self.instructions
            if matches(opcode, rest) and any(begin <= at <= end for begin, end in self.loops)
        ]

    def count(self, opcode):
        return sum(found.startswith(opcode) for _, found, _ in self.instructions)


def nvdisasm():
    for folder in [ROOT / ".venv", pathlib.Path(sys.prefix)]:
        for found in folder.glob("lib/python3*/site-packages/nvidia/cu*/bin/nvdisasm"):
            return str(found)
    sys.exit("check_kernels: nvdisasm is not here; pip install nvidia-cuda-nvdisasm")


def functions(cubin):
    """The kernels of a file of machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([nvdisasm(), "-c", file.name], capture_output=True, text=True, check=True)
    parts = FUNCTION.split(done.stdout)
    return [Function(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)]


def is_fence(opcode, _):
    return opcode.startswith("MEMBAR.") and opcode.endswith(".GPU")


def is_spill(opcode, rest):
    return opcode.startswith(("STL", "LDL")) and "SpillRefill" in rest


def is_empty_l1(opcode, _):
    return opcode.startswith("CCTL.IVALL")


def holds_at_sight(cubin, log, most, moves_registers=False):
    """Says whether the log and a count of opcodes show that no rule is broken in a loop, of which
    most(rule, kernel) may be there. nvdisasm takes 0.4 s for any file, to begin with."""
    entries = ENTRY.findall(log)
    if not entries or SPILLED.search(log) or (moves_registers and len(entries) > 1):
        return False
    words = array("Q", cubin[: len(cubin) // 16 * 16])
    count = Counter(word & 0xFFF for word in words[::2])
    few = all(
        count[MEMBAR] <= most("fence", kernel) and count[CCTL] <= most("empty-l1", kernel)
        for kernel in entries
    )
    return few and (not moves_registers or count[USETMAXREG] > 0)


def findings(log, kernels, moves_registers=False):
    """(rule, kernel, what was found, how often) of each rule that does not hold."""
    found = []
    for match in SERIAL.finditer(log):
        found.append(("serial", "", match.group(0), 1))
    for match in IGNORED.finditer(log):
        found.append(("registers", "", match.group(0), 1))
    for kernel in kernels:
        if moves_registers and kernel.count("HGMMA") > 0 and kernel.count("USETMAXREG") == 0:
            found.append(("registers", kernel.name, "there is no USETMAXREG", 1))
        for rule, matches in (("spill", is_spill), ("fence", is_fence), ("empty-l1", is_empty_l1)):
            places = kernel.in_loops(matches)
            if places:
                kinds = ", ".join(f"{n} {opcode}" for opcode, n in Counter(o for _, o in places).items())
                found.append(
                    (rule, kernel.name, f"{kinds} in loops, first at 0x{places[0][0]:x}", len(places))
                )
    return found


# ---- Faults that must be found

PLANTED = """
#include "heddle/kit/kernel_sm90.cuh"
using namespace heddle;
using namespace heddle::device;
"""
FAULTS = {
    "spill": """extern "C" __global__ void __launch_bounds__(1024, 2) planted(float* x, int n) {
  float v[48];
  for (int i = 0; i < 48; ++i) v[i] = x[i * 1024 + threadIdx.x];
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int i = 0; i < 48; ++i) v[i] = v[i] * v[(i + 7) % 48] + v[(i * 5 + 3) % 48];
  }
  for (int i = 0; i < 48; ++i) x[i * 1024 + threadIdx.x] = v[i];
}""",
    "serial": """extern "C" __global__ void __launch_bounds__(128) planted(float* x, u64 a, u64 b, int n) {
  float s[32] = {};
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
    arch::begin_products();
    arch::multiply<arch::Terms::kBf16, arch::Major::kK, arch::Major::kK>(s, a, b, true);
    arch::commit_products();
    for (int i = 0; i < 32; ++i) s[i] *= 2;
    arch::wait_products<0>();
  }
  for (int i = 0; i < 32; ++i) x[i * 128 + threadIdx.x] = s[i];
}""",
    "registers": """extern "C" __global__ void planted(float* x) {
  if (threadIdx.x < 128) arch::give_registers<24>(); else arch::take_registers<240>();
  x[threadIdx.x] = 1;
}""",
    "fence": """extern "C" __global__ void planted(u32* x, int n) {
#pragma unroll 1
  for (int j = 0; j < n; ++j) { x[j * 2 + 5] = j; arch::add_release(x, 1); }
}""",
    "empty-l1": """extern "C" __global__ void planted(u32* x) {
  while (arch::load_acquire(x) == 0) {}
  x[1] = 1;
}""",
    "": """extern "C" __global__ void __launch_bounds__(256, 1) planted(float* x, u32* c, int n) {
  if (threadIdx.x < 128) arch::give_registers<24>(); else arch::take_registers<240>();
#pragma unroll 1
  for (int j = 0; j < n; ++j) x[threadIdx.x + j * 256] *= 2;
  if (arch::load_acquire(c) == 0) arch::add_release(c, 1);
}""",
}


def check_planted():
    """Each planted fault is found, and nothing in a kernel without one."""
    assert PURPOSE.findall("// In loops on purpose: 2 fence: turns\n") == [("2", "fence", "turns")]
    for rule, text in FAULTS.items():
        cubin, log = device_kernel.compile_text(PLANTED + text)
        if not cubin:
            sys.exit(f"check_kernels: the kernel with a planted '{rule}' does not compile:\n{log}")
        # The kernel with 'serial' has products and no roles: both rules speak.
        with_roles = rule in ("", "registers", "serial")
        # The log alone says what breaks 'registers' here.
        if holds_at_sight(cubin, log, lambda *_: 0, with_roles) and rule not in ("", "registers"):
            sys.exit(f"check_kernels: a kernel with a planted '{rule}' passes at sight")
        rules = {found[0] for found in findings(log, functions(cubin), moves_registers=with_roles)}
        wanted = {"serial", "registers"} if rule == "serial" else {rule} if rule else set()
        if rules != wanted:
            sys.exit(
                f"check_kernels: in a kernel with '{rule or 'nothing'}' planted, {sorted(rules)} is found"
            )
    print(f"planted: {len(FAULTS) - 1} faults are found, and nothing in a good kernel")


# ---- The kernels of the tree


def purposes(op):
    """{rule: how many are meant} of a whole kernel's file; "matmul_kernel.sm90" is matmul_kernel.sm90.cuh."""
    meant = Counter()
    for path in ROOT.glob(f"heddle/ops/*/{op}.cuh"):
        for count, rule, _ in PURPOSE.findall(path.read_text()):
            meant[rule] += int(count)
    return meant


def has_roles(op):
    """True if the kernel's file, or one of its family that it includes, has roles."""
    for path in ROOT.glob(f"heddle/ops/*/{op}.cuh"):
        text = path.read_text()
        parts = re.findall(r'#include "(heddle/ops/\S+\.cuh)"', text)
        if any("kit/move/roles.cuh" in t for t in (text, *((ROOT / part).read_text() for part in parts))):
            return True
    return False


def compile_kernels(args, folder):
    """Rows of `heddle check`; their code lies in the folder."""
    command = [args.heddle, "check", "--arch", args.arch, "--json", "--code", str(folder)]
    command += ["--ops", args.ops] if args.ops else []
    command += ["--all-configs"] if args.all_configs else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def rows_of_folder(folder):
    """Rows for the cubins of a folder. A file of heddle's cache has 40 bytes and the log before the code."""
    return [
        {"op": path.name[:12], "arch": "", "config": "", "code": path}
        for path in sorted(folder.glob("*.cubin"))
    ]


def code_of(row, folder):
    path = row["code"] if isinstance(row["code"], pathlib.Path) else folder / f"{row['code']}.cubin"
    raw = path.read_bytes()
    begin = raw.find(b"\x7fELF")
    log_file = path.with_suffix(".log")
    log = log_file.read_text() if log_file.exists() else raw[40 : max(begin, 40)].decode(errors="replace")
    return raw[begin:] if begin >= 0 else b"", log


def check_row(row, folder):
    """(row, kernels, what breaks a rule, what is known)."""
    failure = [("budget", "", row["failure"], 1)] if row.get("failure") else []
    if not row.get("optimised", True):
        return row, 0, failure, []
    cubin, log = code_of(row, folder)
    if not cubin:
        return row, 0, [("compile", "", row.get("failure", "there is no code")[:200], 1)], []
    whole = "_kernel." in row["op"]
    moves = whole and has_roles(row["op"]) and any(arch in row["arch"] for arch in MOVES_REGISTERS)
    meant = purposes(row["op"])

    def most(rule, kernel, otherwise=0):
        if whole or (kernel and kernel not in FRAMES):
            return meant[rule]
        return FRAMES.get(kernel, {}).get(rule, otherwise)

    at_sight = holds_at_sight(cubin, log, most, moves)
    kernels = [] if at_sight else functions(cubin)
    wrong, known = failure, []
    for rule, kernel, what, count in findings(log, kernels, moves):
        (known if count <= most(rule, kernel, count) else wrong).append((rule, kernel, what, count))
    return row, len(ENTRY.findall(log)) if at_sight else len(kernels), wrong, known


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("--heddle", default=str(ROOT / "build/release/heddle"))
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--ops", default="")
    parser.add_argument("--all-configs", action="store_true")
    parser.add_argument("--code", type=pathlib.Path)
    parser.add_argument("--planted", action="store_true", help="only look for planted faults")
    args = parser.parse_args()
    check_planted()
    if args.planted:
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.code or pathlib.Path(scratch)
        rows = rows_of_folder(folder) if args.code else compile_kernels(args, folder)
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda row: check_row(row, folder), rows))
    failed, kernels, totals = 0, 0, Counter()
    for row, count, wrong, known in results:
        kernels += count
        name = " ".join(str(row[key]) for key in ("op", "arch", "config", "rows", "types") if row.get(key))
        for rule, kernel, what, _ in wrong:
            print(f"FAIL {name}: {rule}: {kernel} {what}")
            failed += 1
        for rule, kernel, what, number in known:
            totals[rule, kernel or "log"] += number
            print(f"known {name}: {rule}: {kernel} {what}")
    for (rule, kernel), number in sorted(totals.items()):
        print(f"known in all, {kernel}: {number} {rule}")
    print(f"{kernels} kernels of {len(rows)} compilations, {failed} faults")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
