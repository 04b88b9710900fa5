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
std::string links_source(const Opcode& opcode, size_t number, const KnownArgs& known,
                         const KernelTraits& traits) {
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
    const bool variant = has_variant(op) && (traits.has_ring || !takes_weight(get_op(op)));
    text += fmt::format("using {} = Link<{}::{}, {}{}>;\n", name, op, variant ? "DeviceBody" : "Body", args,
                        more);
  }
  return text;
}

// Products are with weights; bodies for GPUs, as attention's, choose by what lies in tensors, in two bytes.
struct FindTypes : ArgVisitor {
  std::array<bool, kNumDTypes> uses = {};
  bool in_tensors = false;
  void tensor(const char*, Tensor& value, const char*, Access) override {
    if (in_tensors && value.exists() && is_float(value.dtype) && size_of(value.dtype) == 2)
      uses[size_t(value.dtype)] = true;
  }
  void weight(const char*, Weight& value, const char*) override {
    if (value.data.exists()) uses[size_t(value.data.dtype)] = true;
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

// For a row of x as products read it, the sums of a tile's columns, and those of each warp, twice, beside tagged vectors: of
// the call that has most.
u32 scratch_of_a_row(const Program& program) {
  struct Largest : ArgVisitor {
    const Program* program;
    i64 bytes = 0;
    std::string_view input;  // what a product copies as it lies; empty: a prologue makes it
    bool exact = false;      // in bf16
    bool in_place = false;   // on chip already

    void tensor(const char* argument, Tensor& value, const char*, Access) override {
      if (argument != input) return;
      exact = value.dtype == DType::kBf16;
      in_place = value.exists() && program->buffers[value.buffer].info.tagged;
    }
    void weight(const char*, Weight& w, const char*) override {
      constexpr i64 kMostColumns = 256, kPadding = 768;
      const auto workers = i64(program->workers.size());
      const i64 share = (w.rows() + workers - 1) / workers;
      const i64 columns = std::min(kMostColumns, (share + 15) / 16 * 16);
      const i64 sums = 4 * (columns + 2 * std::min<i64>(columns, kRowColumns) * kConsumerWarps);
      const bool as_it_lies = exact && w.data.dtype == DType::kBf16;
      const i64 element = !as_it_lies ? 4 : in_place ? 0 : 2;
      bytes = std::max(bytes, w.cols() * element + sums + kPadding);
    }
    void attribute(const char*, i32&) override {}
    void attribute(const char*, float&) override {}
  } largest;
  largest.program = &program;
  const std::vector<u32> stages = tagged_tables(program).stage_bytes;
  i64 most = 0;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    Node node = program.node_of(program.calls[c]);
    largest.bytes = 0;
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const OpSpec& op = *node.parts[i].op;
      const bool copies = i == 0 && node.main == 0 && op.traits.main && !op.traits.streams_by_data;
      largest.input = copies ? op.traits.input : "", largest.exact = largest.in_place = false;
      op.visit(node.parts[i].args.data(), largest);
    }
    most = std::max(most, stages[c] + largest.bytes);
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
      "constexpr bool kTagged = {}, kHasRing = {};\n"
      "constexpr u32 kScratchBytes = {}, kClusterCounters = {};\n"
      "}}\n"
      "#include \"heddle/backend/cuda/arch/{}.cuh\"\n"
      "#include \"heddle/backend/cuda/device/cta.cuh\"\n",
      types, traits.rows > 1, traits.rows > kStreamRows, opcodes.size() == 1, is_known, traits.tagged,
      traits.has_ring, traits.scratch_bytes, traits.cluster_counters, primitives(arch));
  for (const std::string& op : ops) text += fmt::format("#include \"heddle/ops/{0}/{0}.h\"\n", op);
  text += "namespace heddle::device {\n#include \"heddle/tile/math.cuh\"\n";
  for (const std::string& op : ops) text += fmt::format("#include \"heddle/ops/{0}/{0}.cuh\"\n", op);
  for (const std::string& op : ops)
    if (has_variant(op)) text += fmt::format("#include \"{}\"\n", variant_path(op));
  for (size_t n = 0; n < opcodes.size(); ++n) {
    text += links_source(opcodes[n], n, known[n], traits);
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
  FindTypes find;
  for (const Call& call : program.calls) {
    Node node = program.node_of(call);
    for (Part& part : node.parts) {
      find.in_tensors = has_variant(part.op->name);
      part.op->visit(part.args.data(), find);
    }
  }
  KernelTraits traits{find.uses, program.shape.rows};
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

bool takes_weight(const OpSpec& op) {
  struct Find : ArgVisitor {
    bool found = false;
    void tensor(const char*, Tensor&, const char*, Access) override {}
    void weight(const char*, Weight&, const char*) override { found = true; }
    void attribute(const char*, i32&) override {}
    void attribute(const char*, float&) override {}
  } find;
  std::vector<std::byte> args(op.args_size);
  op.construct(args.data());
  op.visit(args.data(), find);
  return find.found;
}

bool runs_variant(const OpSpec& op) {
  return has_variant(op.name) && !takes_weight(op);
}

std::string standalone_source(const OpSpec& op, const std::byte* args, const std::string& arch,
                              Knowledge knowledge) {
  FindTypes find;
  find.in_tensors = runs_variant(op);
  op.visit(const_cast<std::byte*>(args), find);
  // Of any number of rows. A product's CTA has a multiprocessor to itself.
  const KernelTraits traits{.types = find.uses, .rows = kManyStepRows, .scratch_bytes = 0, .has_ring = false};
  const Opcode opcode{.ops = {op.name}};
  const KnownArgs known = known_args(op, args, knowledge);
  std::string ranges;
  for (const TileAxis& axis : op.axes(args, {.gpu = true}))
    ranges += axis.kind == TileAxis::Kind::kRange ? ", true" : ", false";
  return types_source(std::span(&opcode, 1), std::span(&known, 1), traits, arch) +
         fmt::format(R"(#include "heddle/backend/cuda/device/standalone.cuh"
using namespace heddle::device;
extern "C" __global__ __launch_bounds__({}{})
void standalone(const __grid_constant__ heddle::OpGrid grid, const __grid_constant__ Main0::Args args) {{
  run_standalone<Main0{}>(grid, args);
}}
)",
                     kStandaloneThreads, takes_weight(op) ? ", 1" : "", ranges);
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
