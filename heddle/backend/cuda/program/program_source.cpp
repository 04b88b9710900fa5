#include "heddle/backend/cuda/program/program_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "heddle/backend/cuda/compiler/archs.h"
#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/backend/cuda/device/params.h"
#include "heddle/base/error.h"
#include "heddle/ir/product.h"
#include "heddle/ir/registry.h"

namespace heddle::cuda {

std::string pascal_case(const std::string& words) {
  std::string name;
  bool upper = true;
  for (char c : words) {
    if (c != '_') name += upper ? char(std::toupper(c)) : c;
    upper = c == '_';
  }
  return name;
}

namespace {

constexpr const char* kVariant = ".sm80.cuh";

std::string include_of(const std::string& op, const char* suffix) {
  return fmt::format("#include \"{}\"\n", op_source(op, suffix));
}

// Returns what a program includes of an op, or the texts of one that was made at run time, which are in no file.
OpText text_of(const std::string& op) {
  const OpSpec* const spec = find_op(op);
  if (spec && spec->text) return spec->text();
  return {pascal_case(op), op, include_of(op, ".h"), include_of(op, ".cuh")};
}

// Names part `part` of opcode `opcode`.
std::string link_name(size_t opcode, size_t part) {
  return fmt::format("Link{}_{}", opcode, part);
}

// Names the body of an op in a configuration: a template over its values, which replace those of its DefaultConfig. The default is
// the body itself, so that its kernels are the same for ops with and without configurations.
std::string body_text(const std::string& op, const char* body, const OpConfig& config,
                      const std::string& name, std::string& types) {
  if (config.values().empty()) return fmt::format("{}::{}", op, body);
  types += fmt::format("struct Config{} : {}::DefaultConfig {{\n", name, op);
  for (const auto& [value, number] : config.values())
    types += fmt::format("static constexpr decltype({0}::DefaultConfig::k{1}) k{1} = {2};\n", op,
                         pascal_case(value), number);
  types += "};\n";
  return fmt::format("{}::{}With<Config{}>", op, body, name);
}

// Writes the types of an opcode's parts, with what is known of their arguments.
std::string links_source(const Opcode& opcode, size_t number, const KnownArgs& known,
                         const KernelTraits& traits) {
  std::string text;
  for (size_t part = 0; part < opcode.ops.size(); ++part) {
    const std::string& op = opcode.ops[part];
    const std::string name = link_name(number, part);
    const OpText names = text_of(op);
    std::string more;
    if (!known.empty()) {
      more = ", Known" + name;
      text += fmt::format("struct Known{} {{\nstatic __forceinline__ void set({}& a) {{\n{}\n}}\n}};\n", name,
                          names.args, known[part]);
    }
    const bool variant = traits.has_ring ? has_variant(op) : runs_variant(get_op(op));
    const OpConfig& config = part == opcode.main ? opcode.config : OpConfig();
    const std::string body = body_text(names.scope, variant ? "DeviceBody" : "Body", config, name, text);
    text += fmt::format("using {} = Link<{}, {}{}>;\n", name, body, names.args, more);
  }
  return text;
}

// Marks the dtypes that an op multiplies with. A product takes the dtype of its weights. Variants such as attention's
// choose by the two-byte floats in their tensors.
void add_types(const OpSpec& op, const std::byte* args, std::array<bool, kNumDTypes>& uses) {
  const bool in_tensors = has_variant(op.name);
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    const Tensor& value = field.elements(args);
    if (!value.exists()) continue;
    if (field.is_weight() || (in_tensors && is_wide_float(value.dtype) && size_of(value.dtype) == 2))
      uses[size_t(value.dtype)] = true;
    if (field.is_weight() && field.weight(args).is_coded())
      uses[size_t(info_of(field.weight(args).coding.code).element)] = true;
  }
}

template <class F>
void each_weight(const Program& program, F&& f) {
  for (const Call& call : program.calls)
    for (const Part& part : program.node_of(call).parts)
      for (const Field& field : part.op->fields)
        if (field.is_weight()) f(field.weight(part.args.data()));
}

// Says whether all weights of a program have panels as the ring has them.
bool has_ring_panels(const Program& program) {
  bool all = true;
  each_weight(program, [&](const Weight& weight) { all &= heddle::has_ring_panels(weight); });
  return all;
}

// Returns the bytes of a slot: panels of codes that fill one bring their scales.
u32 slot_bytes_of(const Program& program) {
  i64 most = kRingSlotBytes;
  each_weight(program, [&](const Weight& weight) {
    if (!weight.is_streamed()) return;
    const CodePanel panel = weight.code_panel();
    const u32 at_once = std::bit_floor(kRingSlotBytes / u32(panel.code_bytes(0)));
    most = std::max(most, i64(std::min(at_once, u32(kItemPanels))) * panel.part_bytes(0));
  });
  return u32(most + 127) / 128 * 128;
}

// Returns the scratch bytes that the product of a row with weight w needs.
i64 scratch_of_a_row(const Program& program, const Tensor* input, const Weight& w) {
  constexpr i64 kMostColumns = 256, kPadding = 768;
  const auto workers = i64(program.workers.size());
  const i64 share = (w.rows() + workers - 1) / workers;
  const i64 columns = std::min(kMostColumns, (share + 15) / 16 * 16);
  const i64 sums = 4 * (columns + 2 * std::min<i64>(columns, kRowColumns) * kConsumerWarps);
  const bool as_it_lies =
      input && input->dtype == DType::kBf16 && w.data.dtype == DType::kBf16 && !w.is_streamed();
  const i64 element = as_it_lies ? 2 : 4;
  return w.cols() * element + sums + kPadding;
}

// Returns the scratch bytes of the call that needs most. Scratch holds a row of x as products read it, the sums of a
// tile's columns, and the sums of each warp, twice.
u32 scratch_of_a_row(const Program& program) {
  i64 most = 0;
  for (const Call& call : program.calls) {
    Node node = program.node_of(call);
    for (size_t i = 0; i < node.parts.size(); ++i) {
      const OpSpec& op = *node.parts[i].op;
      // A product copies `input` as it lies; null: a prologue makes it.
      const bool copies = i == 0 && node.main == 0 && op.traits.main && !op.traits.streams_by_data;
      const Tensor* input = copies ? argument(node.parts[i], op.traits.input) : nullptr;
      for (const Field& field : op.fields)
        if (field.is_weight())
          most = std::max(most, scratch_of_a_row(program, input, field.weight(node.parts[i].args.data())));
    }
  }
  return u32(std::min<i64>(most + 127, 1 << 20)) / 128 * 128;
}

// The ring takes the rest of the chip's memory: at least two slots where a CTA can have 99 KB.
constexpr u32 kLeastScratch = 18 << 10;
u32 most_scratch(const std::string& arch) {
  return (arch_of(arch).shared_kb < 100 ? 40 : 100) << 10;
}

std::string chain_type(const Opcode& opcode, size_t number) {
  require(opcode.main <= 1, "[cuda] a chain has {} prologues; one is the most", opcode.main);
  std::string links;
  for (size_t part = 0; part < opcode.ops.size(); ++part)
    links += (part == 0 ? "" : ", ") + link_name(number, part);
  return fmt::format("{}<{}>", opcode.main == 1 ? "ChainWithPrologue" : "Chain", links);
}

// Writes the part before the kernels: primitives, bodies, and types Main<i> and Chain<i> of the opcodes.
std::string types_source(std::span<const Opcode> opcodes, std::span<const KnownArgs> known,
                         const KernelTraits& traits) {
  std::map<std::string, OpText> ops;
  for (const Opcode& opcode : opcodes)
    for (const std::string& op : opcode.ops) ops.try_emplace(op, text_of(op));
  std::string types;
  for (bool used : traits.types) types += used ? "true, " : "false, ";
  const bool is_known = std::ranges::all_of(known, [](const KnownArgs& args) { return !args.empty(); });
  std::string text = fmt::format(
      "#include \"heddle/base/types.h\"\n"
      "namespace heddle::device {{\n"
      "constexpr bool kUses[] = {{{}}}, kFewRows = {}, kManyRows = {}, kOneOp = {}, kKnown = {}, "
      "kReadsFloats = {};\n"
      "constexpr i32 kWarps = {};\n"
      "constexpr bool kHasRing = {}, kDraws = {}, kHasSlabs = {};\n"
      "constexpr u32 kScratchBytes = {}, kSlotBytes = {};\n"
      "}}\n"
      "#include \"heddle/backend/cuda/device/cta.cuh\"\n"
      "#include \"heddle/kit/value/math.cuh\"\n",
      types, traits.rows > 1, traits.rows > kStreamRows, opcodes.size() == 1 || traits.own_kernels, is_known,
      traits.floats, traits.warps, traits.has_ring, traits.draws, traits.has_slabs, traits.scratch_bytes,
      traits.slot_bytes);
  for (const auto& [op, texts] : ops) text += texts.header;
  text += "namespace heddle::device {\n";
  for (const auto& [op, texts] : ops) text += texts.body;
  for (const auto& [op, texts] : ops)
    if (has_variant(op)) text += include_of(op, kVariant);
  for (size_t n = 0; n < opcodes.size(); ++n) {
    text += links_source(opcodes[n], n, known[n], traits);
    text += fmt::format("using Main{0} = {1};\nusing Chain{0} = {2};\n", n, link_name(n, opcodes[n].main),
                        chain_type(opcodes[n], n));
  }
  return text + "}  // namespace heddle::device\n";
}

constexpr std::string_view kLaunchHeader =
    "#include \"heddle/backend/cuda/device/launch.cuh\"\n"
    "using namespace heddle::device;\n";

// Writes the kernel of opcode `number` of a text.
std::string call_kernel(const std::string& name, size_t number, const KernelTraits& traits) {
  return fmt::format(R"(extern "C" __global__ __launch_bounds__({0}, 1)
void {1}(const __grid_constant__ heddle::KernelParams p, const __grid_constant__ heddle::CallParams call) {{
  run_launch<Main{2}, Chain{2}>(p, call);
}}
)",
                     call_threads(traits.rows, traits.warps), name, number);
}

}  // namespace

bool has_variant(const std::string& op) {
  const OpSpec* const spec = find_op(op);
  return !(spec && spec->text) && !op_source(op, kVariant).empty();
}

KernelTraits KernelTraits::of(const Program& program, const std::string& arch) {
  std::array<bool, kNumDTypes> uses = {};
  for (const Call& call : program.calls)
    for (const Part& part : program.node_of(call).parts) add_types(*part.op, part.args.data(), uses);
  KernelTraits traits{.types = uses, .rows = program.shape.rows};
  traits.draws = program.shape.rows <= kStreamRows && has_ring_panels(program);
  traits.slot_bytes = slot_bytes_of(program);
  // The ring gets what the largest product of a row leaves: the more it gets, the more streams while nothing is
  // computed.
  if (program.shape.rows == 1)
    traits.scratch_bytes = std::clamp(scratch_of_a_row(program), kLeastScratch, most_scratch(arch));
  return traits;
}

KernelTraits KernelTraits::of(const Node& node) const {
  KernelTraits traits = *this;
  bool any_codes = false, any_floats = false;
  for (const Part& part : node.parts)
    for (const Field& field : part.op->fields)
      if (field.is_weight()) (field.weight(part.args.data()).is_coded() ? any_codes : any_floats) = true;
  traits.floats = any_floats || !any_codes;
  return traits;
}

std::string call_source(const Opcode& opcode, const KernelTraits& traits, const KnownArgs& known) {
  return types_source(std::span(&opcode, 1), std::span(&known, 1), traits) + std::string(kLaunchHeader) +
         call_kernel("call", 0, traits);
}

std::string calls_source(std::span<const Opcode> opcodes, KernelTraits traits) {
  traits.own_kernels = true;
  const std::vector<KnownArgs> known(opcodes.size());
  std::string text = types_source(opcodes, known, traits) + std::string(kLaunchHeader);
  for (size_t n = 0; n < opcodes.size(); ++n) text += call_kernel(fmt::format("k{}_call", n), n, traits);
  return text;
}

std::string chain_kernel_source(const Opcode& opcode, const KernelTraits& traits, const KnownArgs& known,
                                const Part& main, const KernelPlan& plan) {
  const std::string& op = main.op->name;
  const std::string file = fmt::format("_kernel.{}.cuh", plan.file);
  const KernelLaunch& launch = plan.launches.front();
  if (op_source(op, file).empty()) fail(ErrorCode::kInternal, "[{}] has no file {}{}", op, op, file);
  constexpr u32 kMostCluster = 8;  // that every device takes
  if (plan.launches.size() != 1 || launch.cluster > kMostCluster || launch.maps.size() > kMostChainMaps)
    fail(ErrorCode::kInternal,
         "[{}] its whole kernel has {} launches, in clusters of {}, with {} tensor maps; must be 1, at most "
         "{} and at most {}",
         op, plan.launches.size(), launch.cluster, launch.maps.size(), kMostCluster, kMostChainMaps);
  std::string constants;
  for (const auto& [value, number] : plan.constants.values())
    constants += fmt::format("static constexpr decltype({0}::KernelConfig::k{1}) k{1} = {2};\n", op,
                             pascal_case(value), number);
  // A compiler that knows the architecture by its name alone makes a kernel without code, which no device takes.
  return types_source(std::span(&opcode, 1), std::span(&known, 1), traits) +
         fmt::format(R"(#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "heddle/backend/cuda/device/chain_kernel.cuh"
{0}namespace heddle::device {{
struct Config : {1}::KernelConfig {{
{2}static constexpr {3} types() {{
{3} a{{}};
{4}
return a;
}}
}};
}}  // namespace heddle::device
using Frame = heddle::device::CallFrame<heddle::device::Chain0>;
using Whole = heddle::device::{1}::{5}<heddle::device::Config, Frame>;
#else
#include "heddle/kit/arch/tensor_map.h"
struct Frame {{
  const heddle::KernelParams& p;
  const heddle::CallParams& call;
}};
struct Whole {{
  static constexpr heddle::u32 kThreads = 32;
  static void run(const Frame&, const heddle::TensorMap*) {{}}
}};
#endif
extern "C" __global__ __launch_bounds__(Whole::kThreads, 1)
void call(const __grid_constant__ heddle::KernelParams p, const __grid_constant__ heddle::CallParams call,
          const __grid_constant__ heddle::TensorMaps<{6}> maps) {{
  Whole::run(Frame{{p, call}}, maps.at);
}}
)",
                     include_of(op, file.c_str()), op, constants, pascal_case(op),
                     known_args(*main.op, main.args.data(), Knowledge::kTypes).front(), launch.name,
                     launch.maps.size());
}

bool takes_weight(const OpSpec& op) {
  return std::ranges::any_of(op.fields, [](const Field& field) { return field.is_weight(); });
}

bool takes_matrix(const OpSpec& op) {
  return std::ranges::any_of(op.fields, [](const Field& field) { return field.is_matrix(); });
}

bool runs_variant(const OpSpec& op) {
  return has_variant(op.name) && !takes_weight(op);
}

std::string standalone_source(const OpSpec& op, const std::byte* args, Knowledge knowledge,
                              const OpConfig& config) {
  // The kernel serves any number of rows.
  KernelTraits traits{.rows = kManyStepRows,
                      .scratch_bytes = 0,
                      .has_ring = false,
                      .has_slabs = takes_weight(op) || takes_matrix(op)};
  add_types(op, args, traits.types);
  const Opcode opcode{.ops = {op.name}, .config = config};
  const KnownArgs known = known_args(op, args, knowledge);
  std::string ranges;
  for (const TileAxis& axis : op.axes(args, {.gpu = true}))
    ranges += axis.kind == TileAxis::Kind::kRange ? ", true" : ", false";
  return types_source(std::span(&opcode, 1), std::span(&known, 1), traits) +
         fmt::format(R"(#include "heddle/backend/cuda/device/standalone.cuh"
using namespace heddle::device;
extern "C" __global__ __launch_bounds__({}{})
void standalone(const __grid_constant__ heddle::OpGrid grid, const __grid_constant__ Main0::Args args) {{
  run_standalone<Main0{}>(grid, args, "{}");
}}
)",
                     // A product's CTA has a multiprocessor to itself.
                     kStandaloneThreads, takes_weight(op) ? ", 1" : "", ranges, op.name);
}

std::string megakernel_source(const Program& program, const std::string& arch, Knowledge knowledge) {
  std::vector<KnownArgs> known;
  for (size_t i = 0; i < program.opcodes.size(); ++i) known.push_back(known_args(program, i, knowledge));
  std::string streams, runs;
  for (size_t i = 0; i < program.opcodes.size(); ++i) {
    streams +=
        fmt::format("    case {0}: return stream_chain<Main{0}>(loader, Chain{0}{{args}}, tile);\n", i);
    runs += fmt::format(
        "    case {0}: {{ Chain{0} chain{{args}}; return run_chain<Main{0}>(block, chain, tile); }}\n", i);
  }
  return types_source(program.opcodes, known, KernelTraits::of(program, arch)) +
         fmt::format(R"(namespace heddle::device {{
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
