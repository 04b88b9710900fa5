"""Whole kernels of ops of one's own, as far as no GPU is needed: their plans, and what compiles them."""

import json
import re
import sys
from pathlib import Path

import numpy
import pytest

import heddle
import heddle.ops
from heddle import _heddle, env, layout
from heddle.own.op import _made
from own_folder import load_thrice

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples"))

BOXED = """
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 128;
  static constexpr DType kType = Config::types().x.dtype;

  static void run(const Args& a, const TensorMap* maps, u8*) {
    u8* const chip = arch::dynamic_shared();
    const arch::OnChip full = arch::on_chip(chip + 4096);
    if (threadIdx.x == 0) arch::init_barrier(full, 1);
    arch::show_to_copies();
    __syncthreads();
    if (threadIdx.x == 0) {
      arch::expect_bytes(full, 4096);
      arch::load_box(arch::on_chip(chip), maps, full, arch::Corner2{0, i32(blockIdx.x) * Config::kRows});
    }
    arch::wait_barrier(full, 0);
    if (i32(threadIdx.x) < a.y.last())
      store_element(kType, row_of(a.y, i32(blockIdx.x)), i32(threadIdx.x), load_element(kType, chip, 0));
  }
};
"""


class Boxed(heddle.Op):
    """A kernel that copies boxes of 64 elements in rows of 128 bytes."""

    reads = {"x": (heddle.bf16, "M, D")}
    writes = {"y": (heddle.bf16, "M, D")}
    tile = ("M",)
    kernel = {"sm90": BOXED}
    configs = ({"kernel": 1, "rows": 32}, {"kernel": 1, "rows": 16})
    cases = ({"M": 70, "D": 64},)

    @staticmethod
    def plan(call, gpu):
        if not gpu.tensor_maps:
            return "there are no bulk copies"
        rows = call.config["rows"]
        launch = heddle.Launch(
            grid=-(-call.x.shape[0] // rows),
            threads=128,
            shared_bytes=rows * 128 + 16,
            maps=[heddle.TensorMap("x", box=(rows, 64))],
        )
        return heddle.KernelPlan([launch], constants={"rows": rows})

    reference = staticmethod(lambda x: x)


ARCHS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120")
needs_nvrtc = pytest.mark.skipif(
    "nvrtc" in env.missing(env.lines()), reason="no run-time compiler here (libnvrtc)"
)


def compiled(cls, archs=ARCHS):
    """Compiles an op's kernels with NVIDIA's compiler, which needs no GPU: {(body, arch): registers}."""
    rows = _heddle.compile_op(_made(cls).name, list(archs), not cls.declaration.body)
    assert not [row["failure"] for row in rows if row["failure"]]
    return {(row["body"], row["arch"]): row["registers"] for row in rows}


@needs_nvrtc
def test_the_kernel_of_the_tutorial_compiles_for_every_architecture():
    """In the frame that a call has, with the tile body's."""
    from sums_of_rows import SumsOfRows

    made = compiled(SumsOfRows)
    assert set(made) == {(f"sums_of_rows{kind}", arch) for kind in ("", "_kernel.sm80") for arch in ARCHS}
    assert all(0 < registers < 128 for registers in made.values())


def headers(folder):
    return [f"heddle/{folder}/{path.name}" for path in sorted((ROOT / "heddle" / folder).glob("*"))]


EVERYTHING = "".join(
    f'#include "{path}"\n'
    for path in (
        "heddle/kit/kernel_sm80.cuh",
        "heddle/kit/arch/tensor_map.h",
        *(
            path
            for room in ("arch", "move", "rows", "value")
            for path in headers(f"kit/{room}")
            if path[-3:] == "cuh"
        ),
        *(path for path in headers("tile") if path.endswith(".h")),
        "heddle/base/types.h",
        "heddle/ir/tensor.h",
    )
)
STORES = """
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 32;
  static void run(const Args& a, const TensorMap*, u8*) {
    arch::wait_for_kernel_before();
    store_element(DType::kF32, row_of(a.y, i32(blockIdx.x)), i32(threadIdx.x), exp(float(lane())));
  }
};
"""
ALL_OF_SM90 = '#include "heddle/kit/kernel_sm90.cuh"\n'


@needs_nvrtc
@pytest.mark.parametrize("file", ["sm80", "sm90"])
def test_whatever_the_page_lets_a_kernel_include_compiles(file):
    """Together, for every architecture, in a file that is for all and in one for sm_90 and later."""
    more = ALL_OF_SM90 if file == "sm90" else ""

    class Everything(heddle.Op):
        name = f"everything_of_{file}"
        reads = {"x": (heddle.f32, "M, D")}
        writes = {"y": (heddle.f32, "M, D")}
        tile = ("M",)
        kernel = {file: EVERYTHING + more + STORES}
        cases = ({"M": 3, "D": 32},)
        plan = staticmethod(lambda call, gpu: heddle.Launch(grid=3, threads=32))

    archs, body = ARCHS if file == "sm80" else ARCHS[2:], f"everything_of_{file}_kernel.{file}"
    assert set(compiled(Everything, archs)) == {(body, arch) for arch in archs}
    if file == "sm90":
        with pytest.raises(heddle.Unsupported, match=r"its kernel is for sm_90 and later; the GPU is sm_80"):
            compiled(Everything, ["sm_80"])


@needs_nvrtc
def test_configurations_and_folders_compile(tmp_path):
    made = compiled(Boxed, ["sm_90a"])
    assert set(made) == {("boxed_kernel.sm90", "sm_90a")}
    assert len(compiled(load_thrice(tmp_path))) == 2 * len(ARCHS)


@needs_nvrtc
def test_a_package_has_the_kernels_of_the_cases(tmp_path):
    """Also of a kernel that takes rows of 64 elements alone."""
    from sums_of_rows import SumsOfRows

    assert _heddle.package_ops([_made(SumsOfRows).name], "sm_90a", True, str(tmp_path), None) == 2


@needs_nvrtc
def test_check_compiles_for_architectures_that_are_not_here(capsys):
    from heddle import check

    place = ROOT / "examples/sums_of_rows.py"
    assert check.main([f"{place}:SumsOfRows", "--arch", "sm_80,sm_90a"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"sums_of_rows_kernel.sm80 for sm_90a: \d+ registers, 0 bytes spilled", said[3])
    assert said[4] == "1 of 1 ops compile for sm_80, sm_90a"
    assert check.main([f"{Path(__file__)}:Boxed", "--arch", "sm_80"]) == 1
    assert capsys.readouterr().out.startswith("FAIL boxed for sm_80: [boxed] its kernel does not take")
    with pytest.raises(heddle.InvalidArgument, match=r"--arch has sm_70; must be of sm_80, .*"):
        check.main([f"{place}:SumsOfRows", "--arch", "sm_70"])


@needs_nvrtc
def test_the_compiler_names_a_line_of_the_kernel_and_a_plan_of_other_threads():
    from heddle import check

    def said(text, threads=128):
        changes = {"kernel": {"sm90": text}, "name": "boxed_wrong"}
        plan = staticmethod(lambda call, gpu: heddle.Launch(grid=1, threads=threads))
        op = type("Wrong", (Boxed,), {**changes, "plan": plan, "configs": ()})
        (line,) = map(check.line_of, check.compile_op(_made(op).name, ["sm_90a"]))
        return line

    plain = BOXED.replace("Config::kRows", "1")
    wrong = said(plain.replace("a.y.last()", "a.y.lost()"))
    assert re.match(
        r"FAIL boxed_wrong\w*_kernel.sm90 for sm_90a: .*:18: .*has no member .*lost", str(wrong)
    ), wrong
    wrong = said(plain, threads=64)
    assert "the plan launches Kernel with 64 threads; must be its kThreads" in wrong.record["failure"]


@pytest.mark.parametrize(
    "what",
    ["<cuda_bf16.h>", "<cstdint>", '"parts.cuh"', '"heddle/backend/cuda/device/cta.cuh"',
     '"heddle/tile/math.cuh"'],
)  # fmt: skip
def test_an_include_that_cannot_be_there_is_named(what):
    """Before any compiler looks, and on a machine without a GPU."""
    text = f"// A kernel.\n#pragma once\n#include {what}\n{STORES}"
    body = "for (i32 m = t[0]; m < t[1]; ++m) block.row(a.y, m).set(0, 1);"
    parts = {"reads": Boxed.reads, "writes": {"y": (heddle.f32, "M, D")}, "tile": ("M",), "body": body}
    op = type("Including", (heddle.Op,), {**parts, "kernel": text, "plan": Boxed.plan})
    with pytest.raises(
        heddle.CompileError, match=rf"\[including\] .*: it includes {re.escape(what)}; must"
    ) as e:
        op.compile()
    assert e.value.line == 3 or "<kernel" in str(e.value)


@needs_nvrtc
def test_a_kernel_may_include_files_next_to_it(tmp_path):
    from heddle import check

    (tmp_path / "values.cuh").write_text("#pragma once\ninline float made(float x) { return 2 * exp(x); }\n")
    head = '#include "heddle/kit/kernel_sm80.cuh"\n'
    (tmp_path / "helper.cuh").write_text(head + '#include "values.cuh"\n#include "values.cuh"\n')
    file = tmp_path / "rows.cuh"
    file.write_text('#include "helper.cuh"\n' + STORES.replace("exp(float(lane()))", "made(float(lane()))"))

    def declared(name):
        parts = {"name": name, "reads": {"x": (heddle.f32, "M, D")}, "writes": {"y": (heddle.f32, "M, D")}}
        parts |= {"tile": ("M",), "kernel": file, "cases": ({"M": 3, "D": 32},)}
        parts["plan"] = staticmethod(lambda call, gpu: heddle.Launch(grid=3, threads=32))
        return type("Helped", (heddle.Op,), parts)

    assert set(compiled(declared("helped"))) == {("helped_kernel.sm80", arch) for arch in ARCHS}
    text = (tmp_path / "values.cuh").read_text()
    (tmp_path / "values.cuh").write_text(text.replace("exp(x)", "expp(x)"))
    rows = check.compile_op(_made(declared("helped")).name, ["sm_90a"])  # another op, since its text changed
    assert re.search(r"values.cuh:2: .*expp", str(check.line_of(next(iter(rows)))))
    (tmp_path / "helper.cuh").write_text("#pragma once\n\n#include <cstdint>\n")
    with pytest.raises(heddle.CompileError, match=r"helper.cuh:3: it includes <cstdint>; must"):
        declared("helped_again").compile()


def test_layout_shows_launches_and_banks(capsys):
    here = Path(__file__)
    assert layout.main([f"{here}:Boxed", "--rows", "2", "--cols", "9"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "boxed_kernel.sm90 with rows=32, for M=70, D=64",
        "Kernel: 3 CTAs of 128 threads, clusters of 1, 4112 bytes of shared memory",
        "  box 0: 32 x 64 of x, bf16",
        "box 0:",
        "32 x 64 of bf16, 4096 bytes on chip; a cell is bank:byte",
        "             0        1        2        3        4        5        6        7        8",
        "   0       0:0      0:2      1:4      1:6      2:8     2:10     3:12     3:14     4:16",
        "   1     4:144    4:146    5:148    5:150    6:152    6:154    7:156    7:158    0:128",
    ]
    assert layout.main([f"{here}:Boxed", "kernel=1,rows=16"]) == 0
    assert "5 CTAs" in capsys.readouterr().out
    assert layout.main([f"{here}:Boxed", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["file"], found["constants"], found["case"]) == (
        "boxed_kernel.sm90",
        {"rows": 32},
        "M=70, D=64",
    )
    assert [each["dtype"] for each in found["launches"][0]["maps"]] == ["bf16"]
    with pytest.raises(heddle.InvalidArgument, match="--box is 3; there are 1 boxes"):
        layout.main([f"{here}:Boxed", "--box", "3"])
    with pytest.raises(heddle.InvalidArgument, match="softmax is no op of a file; `heddle layout`"):
        layout.main(["softmax"])


def test_the_body_runs_where_the_kernel_does_not():
    import torch
    from sums_of_rows import SumsOfRows

    left, right = (torch.randint(-4, 5, (n, 64)).bfloat16() for n in (9, 5))
    assert torch.equal(SumsOfRows(left, right), (left.float() @ right.float().mT).sum(-1))
    x = torch.ones(3, 64).bfloat16()
    with pytest.raises(heddle.Unsupported, match=r"\[boxed\] has no body; give one"):
        Boxed(x)
    assert torch.equal(Boxed(x, backend="ref"), x)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": 3}, r"kernel is 3; must be CUDA as text or a pathlib.Path"),
        ({"kernel": {"sm70": BOXED}}, r"kernel is .*sm70.*; must be"),
        ({"plan": None}, r"plan is None; must be a static method plan\(call, gpu\)"),
        ({"configs": [{"Rows": 3}]}, r"a configuration is \{'Rows': 3\}; must be like"),
        ({"configs": [{"rows": "3"}]}, r"a configuration is .*; must be like"),
        ({"configs": [{"rows": 3}, {"rows": 3}]}, r"configs is .*; must have each configuration once"),
        (
            {"configs": [{"rows": 3}], "tile": {"M": "columns"}},
            r"the tile of M is 'columns'; must be elements",
        ),
    ],
)
def test_a_wrong_class_is_refused_where_it_stands(changes, message):
    with pytest.raises(heddle.InvalidArgument, match=r"\[Wrong\] " + message):
        type("Wrong", (Boxed,), {"writes": Boxed.writes, **changes})


def test_the_page_shows_the_code_of_the_example():
    page = (ROOT / "docs/kernels.md").read_text()
    shown = "\n".join(re.findall(r"^```cpp\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    code = (ROOT / "examples/sums_of_rows.cuh").read_text().split("\n", 1)[1]
    assert code == shown
    (declared, _) = re.findall(
        r"^```python\n(.*?)^```", page.split("## Launching it")[1], re.MULTILINE | re.DOTALL
    )[:2]
    example = (ROOT / "examples/sums_of_rows.py").read_text()
    body = declared[declared.index("    body =") : declared.index("    peers")]
    assert body in example


def test_a_tensor_map_is_checked():
    def planned(box):
        plan = staticmethod(lambda call, gpu: heddle.Launch(1, maps=[heddle.TensorMap("x", box)]))
        return type("Mapped", (Boxed,), {"plan": plan, "configs": ()})

    for box in ((4, 4, 4), (300, 4), (0, 4)):
        with pytest.raises(heddle.InvalidArgument, match=r"has the box .* of \[70, 64\]; must have as many"):
            layout.plan_of(planned(box), None, {})


def test_an_edited_kernel_is_another_op():
    other = type("Boxed", (Boxed,), {"kernel": {"sm90": BOXED + "\n// edited"}})
    assert _made(other).name != _made(Boxed).name
    again = type("Boxed", (Boxed,), {"kernel": {"sm90": BOXED}, "__doc__": Boxed.__doc__})
    assert _made(again).name == _made(Boxed).name
    assert numpy.array_equal(Boxed.reference(numpy.ones(3)), numpy.ones(3))
