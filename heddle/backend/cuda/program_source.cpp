#include "heddle/backend/cuda/program_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "heddle/backend/cuda/cluster_counters.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/sources.h"
#include "heddle/backend/cuda/tagged.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// "rms_norm" -> "RmsNorm", the name of its arguments.
std::string args_name(const std::string& op) {
  std::string name;
  bool upper = true;
  for (char c : op) {
    if (c != '_') name += upper ? char(std::toupper(c)) : c;
    upper = c == '_';
  }
  return name;
}

bool has_source(const std::string& path) {
  for (const EmbeddedFile& source : device_sources())
    if (source.path == path) return true;
  return false;
}

std::string variant_path(const std::string& op) {
  return fmt::format("heddle/ops/{0}/{0}.sm80.cuh", op);
}

// Part `part` of opcode `opcode`.
std::string link_name(size_t opcode, size_t part) {
  return fmt::format("Link{}_{}", opcode, part);
}

// The types of an opcode's parts, with what is known of their arguments.
std::string links_source(const Opcode& opcode, size_t number, const KnownArgs& known) {
  std::string text;
  for (size_t part = 0; part < opcode.ops.size(); ++part) {
    const std::string& op = opcode.ops[part];
    const std::string name = link_name(number, part), args = args_name(op);
    std::string more;
    if (!known.empty()) {
      more = ", Known" + name;
      text += fmt::format("struct Known{} {{\nstatic __forceinline__ void set({}& a) {{\n{}\n}}\n}};\n", name,
                          args, known[part]);
    }
    text += fmt::format("using {} = Link<{}::{}, {}{}>;\n", name, op, has_variant(op) ? "DeviceBody" : "Body",
                        args, more);
  }
  return text;
}

// Dtypes of products. Those are with weights; bodies for GPUs, as attention's, choose by what lies in tensors, in two bytes.
void add_types(const Part& part, std::array<bool, kNumDTypes>& uses) {
  const bool in_tensors = has_variant(part.op->name);
  for (const Field& field : part.op->fields) {
    if (field.is_attribute()) continue;
    const Tensor& value = field.elements(part.args.data());
    if (!value.exists()) continue;
    if (field.is_weight() || (in_tensors && is_float(value.dtype) && size_of(value.dtype) == 2))
      uses[size_t(value.dtype)] = true;
  }
}

// Of the product of a row with weight w.
i64 scratch_of_a_row(const Program& program, const Tensor* input, const Weight& w) {
  constexpr i64 kMostColumns = 256, kPadding = 768;
  const auto workers = i64(program.workers.size());
  const i64 share = (w.rows() + workers - 1) / workers;
  const i64 columns = std::min(kMostColumns, (share + 15) / 16 * 16);
  const i64 sums = 4 * (columns + 2 * std::min<i64>(columns, kRowColumns) * kConsumerWarps);
  const bool as_it_lies = input && input->dtype == DType::kBf16 && w.data.dtype == DType::kBf16;
  const bool on_chip = as_it_lies && input->exists() && program.buffers[input->buffer].info.tagged;
  const i64 element = !as_it_lies ? 4 : on_chip ? 0 : 2;
  return w.cols() * element + sums + kPadding;
}

// For a row of x as products read it, the sums of a tile's columns, and those of each warp, twice, beside tagged vectors: of
// the call that has most.
u32 scratch_of_a_row(const Program& program) {
  const std::vector<u32> stages = tagged_tables(program).stage_bytes;
  i64 most = 0;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    Node node = program.node_of(program.calls[c]);
    i64 bytes = 0;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const OpSpec& op = *node.parts[i].op;
      // What a product copies as it lies; null: a prologue makes it.
      const bool copies = i == 0 && node.main == 0 && op.traits.main && !op.traits.streams_by_data;
      const Tensor* input = copies ? argument(node.parts[i], op.traits.input) : nullptr;
      for (const Field& field : op.fields)
        if (field.is_weight())
          bytes = std::max(bytes, scratch_of_a_row(program, input, field.weight(node.parts[i].args.data())));
    }
    most = std::max(most, stages[c] + bytes);
  }
  return u32(std::min<i64>(most + 127, 1 << 20)) / 128 * 128;
}

// Beside a ring of some slots, and on GPUs of 99 KB of at least two.
constexpr u32 kLeastScratch = 18 << 10;
u32 most_scratch(const std::string& arch) {
  const bool small = arch == "sm_86" || arch == "sm_89" || arch == "sm_120";
  return (small ? 40 : 100) << 10;
}

std::string chain_type(const Opcode& opcode, size_t number) {
  require(opcode.main <= 1, "[cuda] a chain has {} prologues; one is the most", opcode.main);
  std::string links;
  for (size_t part = 0; part < opcode.ops.size(); ++part)
    links += (part == 0 ? "" : ", ") + link_name(number, part);
  return fmt::format("{}<{}>", opcode.main == 1 ? "ChainWithPrologue" : "Chain", links);
}

std::string primitives(const std::string& arch) {
  return arch == "sm_80" || arch == "sm_86" || arch == "sm_89" ? "sm80" : "sm90";
}

// What comes before kernels: primitives, bodies, and types Main<i> and Chain<i> of the opcodes.
std::string types_source(std::span<const Opcode> opcodes, std::span<const KnownArgs> known,
                         const KernelTraits& traits, const std::string& arch) {
  std::set<std::string> ops;
  for (const Opcode& opcode : opcodes) ops.insert(opcode.ops.begin(), opcode.ops.end());
  std::string types;
  for (bool used : traits.types) types += used ? "true, " : "false, ";
  const bool is_known = std::ranges::all_of(known, [](const KnownArgs& args) { return !args.empty(); });
  std::string text = fmt::format(
      "#include \"heddle/base/types.h\"\n"
      "namespace heddle::device {{\n"
      "constexpr bool kUses[] = {{{}}}, kFewRows = {}, kManyRows = {}, kOneOp = {}, kKnown = {};\n"
      "constexpr bool kTagged = {};\n"
      "constexpr u32 kScratchBytes = {}, kClusterCounters = {};\n"
      "}}\n"
      "#include \"heddle/backend/cuda/arch/{}.cuh\"\n"
      "#include \"heddle/backend/cuda/device/cta.cuh\"\n",
      types, traits.rows > 1, traits.rows > kStreamRows, opcodes.size() == 1, is_known, traits.tagged,
      traits.scratch_bytes, traits.cluster_counters, primitives(arch));
  for (const std::string& op : ops) text += fmt::format("#include \"heddle/ops/{0}/{0}.h\"\n", op);
  text += "namespace heddle::device {\n#include \"heddle/tile/math.cuh\"\n";
  for (const std::string& op : ops) text += fmt::format("#include \"heddle/ops/{0}/{0}.cuh\"\n", op);
  for (const std::string& op : ops)
    if (has_variant(op)) text += fmt::format("#include \"{}\"\n", variant_path(op));
  for (size_t n = 0; n < opcodes.size(); ++n) {
    text += links_source(opcodes[n], n, known[n]);
    text += fmt::format("using Main{0} = {1};\nusing Chain{0} = {2};\n", n, link_name(n, opcodes[n].main),
                        chain_type(opcodes[n], n));
  }
  return text + "}  // namespace heddle::device\n";
}

}  // namespace

bool has_variant(const std::string& op) {
  return has_source(variant_path(op));
}

KernelTraits KernelTraits::of(const Program& program, const std::string& arch) {
  std::array<bool, kNumDTypes> uses = {};
  for (const Call& call : program.calls)
    for (const Part& part : program.node_of(call).parts) add_types(part, uses);
  KernelTraits traits{uses, program.shape.rows};
  traits.tagged = has_tagged(program);
  // What the largest product of a row leaves is the ring's: so much more streams while nothing is computed.
  if (program.shape.rows == 1)
    traits.scratch_bytes = std::clamp(scratch_of_a_row(program), kLeastScratch, most_scratch(arch));
  return traits;
}

std::string call_source(const Opcode& opcode, const KernelTraits& traits, const std::string& arch,
                        const KnownArgs& known) {
  return types_source(std::span(&opcode, 1), std::span(&known, 1), traits, arch) +
         fmt::format(R"(#include "heddle/backend/cuda/device/launch.cuh"
using namespace heddle::device;
extern "C" __global__ __launch_bounds__({}, 1)
void call(const __grid_constant__ heddle::KernelParams p, const __grid_constant__ heddle::CallParams call) {{
  run_launch<Main0, Chain0>(p, call);
}}
)",
                     call_threads(traits.rows));
}

namespace {

// Of an opcode's calls: whether they read tagged vectors, and how much of these is on chip at most.
struct Stage {
  bool reads = false;
  u32 bytes = 0;
};

std::vector<Stage> stages_of(const Program& program) {
  const TaggedTables tagged = tagged_tables(program);
  std::vector<Stage> stages(program.opcodes.size());
  for (size_t c = 0; c < program.calls.size(); ++c) {
    Stage& stage = stages[program.calls[c].opcode];
    stage.bytes = std::max(stage.bytes, tagged.stage_bytes[c]);
    for (u32 t = 0; t < tagged.calls[c].count; ++t)
      stage.reads |= tagged.tensors[tagged.calls[c].first + t].writes == 0;
  }
  return stages;
}

}  // namespace

std::string megakernel_source(const Program& program, const std::string& arch, Knowledge knowledge) {
  std::vector<KnownArgs> known;
  for (size_t i = 0; i < program.opcodes.size(); ++i) known.push_back(known_args(program, i, knowledge));
  const std::vector<Stage> stages = stages_of(program);
  std::string streams, runs;
  for (size_t i = 0; i < program.opcodes.size(); ++i) {
    streams +=
        fmt::format("    case {0}: return stream_chain<Main{0}>(loader, Chain{0}{{args}}, tile);\n", i);
    runs += fmt::format(
        "    case {0}: {{ block.template begin_stage<{1}, {2}>(); Chain{0} chain{{args}}; "
        "return run_chain<Main{0}>(block, chain, tile); }}\n",
        i, stages[i].reads, stages[i].bytes);
  }
  KernelTraits traits = KernelTraits::of(program, arch);
  traits.cluster_counters = cluster_counters(program).count;
  require(traits.cluster_counters == 0 || primitives(arch) != "sm80",
          "[cuda] the program has {} workers in clusters of {}; {} has no clusters", program.workers.size(),
          program.topology.cluster, arch);
  return types_source(program.opcodes, known, traits, arch) + fmt::format(R"(namespace heddle::device {{
template <class L>
inline void stream_opcode(u32 opcode, const u8* args, L& loader, const TileCoord& tile) {{
  switch (opcode) {{
{}  }}
}}
template <class B>
__forceinline__ void run_opcode(u32 opcode, const u8* args, B& block, const TileCoord& tile) {{
  switch (opcode) {{
{}  }}
}}
}}  // namespace heddle::device
#include "heddle/backend/cuda/device/megakernel.cuh"
using namespace heddle::device;
extern "C" __global__ __launch_bounds__(kConsumers + 32 * heddle::kHelperWarps, 1)
void megakernel(const __grid_constant__ heddle::KernelParams p) {{
  run_megakernel(p);
}}
)",
                                                                          streams, runs);
}

}  // namespace heddle::cuda
