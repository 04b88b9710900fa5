"""Expressions as C++: the text of a `Score` (kit/attention/score.h), and of the ops that have it."""

import hashlib
import struct
from string import Template

import torch

from heddle.flex.expression import ONE, SCORE, in_order, slope_of

BASES = ("flash_attention", "flash_attention_backward")
INFIX = {
    **{"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"eq": "==", "ne": "!=", "and": "&&", "or": "||", "xor": "!="},
}
TYPES = {"bool": "bool", "int": "i32", "float": "float"}
PLACES = {
    **{"b": "place.batch", "h": "place.head", "q": "place.query", "kv": "place.key", "score": "score"},
    **{"q_number": "place.query_number", "kv_number": "place.key_number", "apart": "place.apart"},
}
# Elements of captured tensors.
ELEMENTS = {
    torch.float32: ("f32", "reinterpret_cast<const float*>(t.data)[at]"),
    torch.int32: ("i32", "reinterpret_cast<const i32*>(t.data)[at]"),
    torch.bfloat16: (
        "bf16",
        "__builtin_bit_cast(float, u32(reinterpret_cast<const u16*>(t.data)[at]) << 16)",
    ),
}

SCORE_TEXT = Template("""struct Score {
  static constexpr bool kChanges = $changes, kBends = $bends, kMasks = $masks;
  const Args& a;

  explicit Score(const $base& args) : a(static_cast<const Args&>(args)) {}
  static i32 floor_div(i32 x, i32 y) { return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0)); }
  static i32 floor_mod(i32 x, i32 y) { return x - floor_div(x, y) * y; }
  // An index counts from the end where it is negative. One that is outside means the nearest element.
  static i32 inside(i32 index, i32 size) {
    index = index < 0 ? index + size : index;
    return index < 0 ? 0 : index < size ? index : size - 1;
  }
#if defined(HEDDLE_KERNEL_SM90)
  static float abs_of(float x) { return fabsf(x); }
  static float exp_of(float x) { return arch::exp2(x * 1.4426950409f); }
  static float tanh_of(float x) { return 1 - 2 * arch::reciprocal(exp_of(2 * x) + 1); }
  static float sigmoid_of(float x) { return arch::reciprocal(exp_of(-x) + 1); }
  static float quotient(float x, float y) { return x * arch::reciprocal(y); }
#else
  static float abs_of(float x) { return abs(x); }
  static float exp_of(float x) { return exp(x); }
  static float tanh_of(float x) { return tanh(x); }
  static float sigmoid_of(float x) { return sigmoid(x); }
  static float quotient(float x, float y) { return x / y; }
#endif
$reads  Scored of(float score, const ScorePlace& place) const {
$of    return {$value, $slope};
  }
$mask};
""")

# Cells of 128 queries and keys (heddle.flex.lists.mask_cells).
ALL_SEEN = """  bool sees(const ScorePlace&) const { return true; }
  bool sees_all(const ScorePlace&) const { return true; }
  u32 keys_seen(const ScorePlace&) const { return ~0u; }
  u32 queries_seen(const ScorePlace&) const { return ~0u; }
"""
MASK_TEXT = Template("""  i32 cell_of(const ScorePlace& place) const {
    const Tensor& cells = a.captured_$cells;
    return read_$cells(cells, cells.size[0] == 1 ? 0 : place.batch, cells.size[1] == 1 ? 0 : place.head,
                       place.query / 128, place.key / 128);
  }
  // Bits of a row, of queries or keys, from the one numbered `first` on the other side.
  u32 bits_of(i32 cell, i32 side, i32 row, i32 first) const {
    if (cell < 0) return ~0u;
    return u32(read_$bits(a.captured_$bits, cell, side, row % 128, first % 8 / 2)) >>
           (first % 128 / 8 * 2 + first % 2);
  }
  bool sees(const ScorePlace& place) const { return keys_seen(place) & 1; }
  bool sees_all(const ScorePlace& place) const { return cell_of(place) < 0; }
  u32 keys_seen(const ScorePlace& place) const {
    return bits_of(cell_of(place), 0, place.query, place.key);
  }
  u32 queries_seen(const ScorePlace& place) const {
    return bits_of(cell_of(place), 1, place.key, place.query);
  }
""")

HEADER_TEXT = Template("""#include "heddle/ops/flash_attention/$file.h"
namespace heddle {
struct $args : $base {
$members};
static_assert(sizeof($args) == $bytes);
}  // namespace heddle
""")

# The kernels of each op, and its tile body where they do not fit.
KERNELS = {
    "flash_attention": ("Kernel",),
    "flash_attention_backward": ("Kernel", "Prepare", "Order", "Finish"),
}
DEVICE_HEADER = Template("""#if defined(HEDDLE_KERNEL_SM90)
#include "heddle/kit/value/math.cuh"
#include "heddle/ops/flash_attention/${file}_kernel.sm90.cuh"
#endif
$header""")
DEVICE_TEXT = Template("""namespace $scope {
using Args = $args;
$score#if defined(HEDDLE_KERNEL_SM90)
struct KernelConfig : $file::KernelConfig {
  using Score = $scope::Score;
};
$kernels#else
#include "heddle/ops/flash_attention/$file.cuh"
using Body = $file::BodyOf<Score>;
#endif
}  // namespace $scope
""")
HOST_TEXT = Template("""#include "heddle/backend/cpu/plain_block.h"
${header}namespace heddle::own {
namespace {

#include "heddle/backend/cpu/float_value.h"
#include "heddle/tile/math.cuh"

using Args = $args;
$score
#include "heddle/ops/flash_attention/$file.cuh"

}  // namespace
}  // namespace heddle::own

extern "C" __attribute__((visibility("default"))) void heddle_run(const std::byte* args, const int* at) {
  using namespace heddle;
  static thread_local PlainBlock<false> block;
  block.begin();
  own::$file::BodyOf<own::Score>::run(block, *reinterpret_cast<const own::Args*>(args),
                                      TileCoord{{at[0], at[1], at[2], at[3]}});
}
""")


def _struct_of(base):
    return "".join(word.capitalize() for word in base.split("_"))


def number_text(value, kind):
    """A constant as C++ writes it."""
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int":
        return f"i32({value}ll)"
    if abs(value) < 3.4e38:
        return f"{struct.unpack('f', struct.pack('f', value))[0].hex()}f"
    bits = "0x7fc00000u" if value != value else "0x7f800000u" if value > 0 else "0xff800000u"
    return f"__builtin_bit_cast(float, {bits})"


class Lines:
    """Statements that compute the nodes of expressions."""

    def __init__(self, *roots):
        self.names, self.text = {}, ""
        for node in in_order(*roots):
            self.names[node] = self._name_of(node)

    def _name_of(self, node):
        if node.op == "const":
            return number_text(node.data, node.kind)
        if node.op in PLACES:
            return PLACES[node.op]
        name = f"v{len(self.names)}"
        self.text += f"    const {TYPES[node.kind]} {name} = {self._value(node)};\n"
        return name

    def _value(self, node):
        args = [self.names[each] for each in node.args]
        if node.op in INFIX:
            return f" {INFIX[node.op]} ".join(args)
        if node.op == "load":
            tensor = f"a.captured_{node.data}"
            inside = (
                text if each.op in PLACES else f"inside({text}, {tensor}.size[{dim}])"
                for dim, (text, each) in enumerate(zip(args, node.args, strict=True))
            )
            return f"read_{node.data}({tensor}, {', '.join(inside)})"
        return {
            "where": "{0} ? {1} : {2}",
            "not": "!{0}",
            "neg": "-{0}",
            "abs": "abs_of({0})" if node.kind == "float" else "{0} < 0 ? -{0} : {0}",
            "min": "{1} < {0} ? {1} : {0}",
            "max": "{0} < {1} ? {1} : {0}",
            "floordiv": "floor_div({0}, {1})",
            "mod": "floor_mod({0}, {1})",
            "float": "float({0})",
            "exp": "exp_of({0})",
            "tanh": "tanh_of({0})",
            "sigmoid": "sigmoid_of({0})",
            "truediv": "quotient({0}, {1})",
        }.get(node.op, node.op + "({0})").format(*args)


def _reads(forms):
    """A function for each captured tensor that gives one of its elements."""
    text = ""
    for number, (dtype, rank) in enumerate(forms):
        names = [f"i{d}" for d in range(rank)]
        at = " + ".join([*(f"i64({name}) * t.stride[{d}]" for d, name in enumerate(names[:-1])), names[-1]])
        kind = "i32" if dtype == torch.int32 else "float"
        text += (
            f"  static {kind} read_{number}(const Tensor& t,"
            f" {', '.join(f'i32 {each}' for each in names)}) {{\n"
            f"    const i64 at = {at};\n    return {ELEMENTS[dtype][1]};\n  }}\n"
        )
    return text


def score_text(score, masks, forms, base):
    """The struct Score of an op. `score`: an expression; `masks`: whether the last two captured tensors are
    those of mask_cells (heddle.flex.lists); `forms`: (dtype, rank) of captured tensors."""
    slope = slope_of(score)
    of = Lines(score, slope)
    return SCORE_TEXT.substitute(
        changes=number_text(score != SCORE, "bool"),
        bends=number_text(slope != ONE, "bool"),
        masks=number_text(masks, "bool"),
        base=_struct_of(base),
        reads=_reads(forms),
        of=of.text,
        value=of.names[score],
        slope=of.names[slope],
        mask=MASK_TEXT.substitute(cells=len(forms) - 2, bits=len(forms) - 1) if masks else ALL_SEEN,
    )


def key_of(score, masks, forms):
    """A name for what the function computes: equal for equal expressions in every process."""
    text = score_text(score, masks, forms, BASES[0])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def header_text(base, args, forms, size):
    """The text that declares the struct of an op's arguments, of so many bytes."""
    members = "".join(f"  Tensor captured_{number};\n" for number in range(len(forms)))
    return HEADER_TEXT.substitute(args=args, file=base, base=_struct_of(base), members=members, bytes=size)


def device_text(base, name, args, header, score):
    """(struct, scope, header, body) for a device program."""
    kernels = "".join(
        f"template <class Config>\nusing {each} = {base}::{each}<Config>;\n" for each in KERNELS[base]
    )
    body = DEVICE_TEXT.substitute(scope=name, args=args, file=base, score=score, kernels=kernels)
    return args, name, DEVICE_HEADER.substitute(file=base, header=header), body


def host_text(base, args, header, score):
    """The source of a library for the CPU."""
    return HOST_TEXT.substitute(header=header, args=args, score=score, file=base)
