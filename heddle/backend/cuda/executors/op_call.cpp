#include "heddle/backend/cuda/executors/op_call.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "heddle/backend/cuda/device/standalone.h"
#include "heddle/backend/cuda/executors/kernel_call.h"
#include "heddle/backend/cuda/executors/standalone_kernels.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/ir/call/call_cache.h"
#include "heddle/ir/product.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/tile_grid.h"

namespace heddle::cuda {
namespace {

constexpr i64 kMostTiles = 0x7fffffff;
constexpr i64 kTilesPerUnit = 4;   // tiles per multiprocessor, where a call has enough
constexpr i64 kScratchUnit = 128;  // bytes, as in device/block.cuh

// The context that a call runs in, current for as long as this lives.
class CallContext {
 public:
  explicit CallContext(const CallSite& site) {
    ContextHandle current = nullptr;
    driver().context_get_current(&current);
    if (!site.stream && site.device >= 0 && current && is_of_device(current, site.device)) return;
    ContextHandle context = current;
    if (site.stream)
      driver().stream_get_context(static_cast<StreamHandle>(site.stream), &context);
    else if (site.device >= 0)
      context = Device::at(site.device).context();
    require(context != nullptr,
            "[cuda] this thread has no current context, and the call names neither a stream nor a device");
    if (context != current) scope_.emplace(context);
    driver().context_get_id(context, &id_);
  }
  u64 id() const { return id_; }
  static const Device& device() {
    int handle = 0;
    driver().context_get_device(&handle);
    return Device::of_handle(handle);
  }

 private:
  // Remembers the last context of each thread, because finding a device takes the driver longer than a call has. A context's
  // number is never given again.
  bool is_of_device(ContextHandle context, int device) {
    static thread_local struct {
      unsigned long long context = 0;
      int device = -1;
    } last;
    driver().context_get_id(context, &id_);
    if (id_ == last.context && device == last.device) return true;
    if (Device::at(device).context() != context) return false;
    last = {id_, device};
    return true;
  }

  std::optional<ContextScope> scope_;
  unsigned long long id_ = 0;
};

bool is_captured(StreamHandle stream) {
  CaptureStatus status = CaptureStatus::kNone;
  // The default stream reports an error where another stream of the process is captured in the global mode.
  return driver().stream_is_capturing.try_call(stream, &status) != kSuccess || status != CaptureStatus::kNone;
}

void require_running(StreamHandle stream, std::string_view why) {
  if (is_captured(stream)) fail(ErrorCode::kUnsupported, "[cuda] {}", why);
}

// Checks where a call's arguments lie. Only the first call of each shape is checked, because later ones would ask the
// driver each time.
void check_memory(const OpSpec& op, const CallLayout& layout, const std::byte* args, const Device& device) {
  if (!layout.has_addresses(args)) layout.say_why(op, args);
  const std::vector<const void*> addresses = layout.addresses(args);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!addresses[i]) continue;
    const auto at = reinterpret_cast<DevicePointer>(addresses[i]);
    int ordinal = 0, type = 0;
    if (driver().pointer_get_attribute.try_call(&type, PointerAttribute::kMemoryType, at) != kSuccess) {
      require(device.attribute(DeviceAttribute::kPageableMemoryAccess) != 0,
              "[{}] {} is at {:#x}, memory of the host; must be memory of GPU {}", op.name, layout.name_of(i),
              at, device.ordinal());
      continue;
    }
    if (type != kDeviceMemory) continue;  // mapped memory of the host
    driver().pointer_get_attribute(&ordinal, PointerAttribute::kDeviceOrdinal, at);
    require(ordinal == device.ordinal(), "[{}] {} is memory of GPU {}; the call runs on GPU {}", op.name,
            layout.name_of(i), ordinal, device.ordinal());
  }
}

// The bytes of memory that a tile needs: on chip, and off chip for what does not fit there.
struct TileMemory {
  i64 chip = 0, spill = 0;
};

TileMemory memory_of(const OpSpec& op, const std::byte* args, const TileGrid& grid, i64 chip_bytes) {
  const auto padded = [](i64 bytes) { return (bytes + kScratchUnit - 1) / kScratchUnit * kScratchUnit; };
  const auto weight = std::ranges::find_if(op.fields, [](const Field& field) { return field.is_weight(); });
  if (takes_matrix(op) && op.scratch && grid.axes().size() > 1) {
    // The sums lie on chip where they leave room for slabs, which may also use their memory (Block::fragment).
    const i64 chip = std::min(padded(op.scratch(args, grid[0])), chip_bytes / kScratchUnit * kScratchUnit);
    const i64 fragment = padded(fragment_bytes(grid.axes()[0].step, grid.axes()[1].step));
    return {chip, fragment <= chip / 3 * 2 ? 0 : fragment};
  }
  if (weight == op.fields.end()) {
    constexpr i64 kPieces = 24;  // each is padded; Scratch::take finds a body with too many
    const i64 scratch = op.scratch ? op.scratch(args, grid[0]) + kPieces * kScratchUnit : 0;
    return scratch <= chip_bytes ? TileMemory{padded(scratch), 0} : TileMemory{0, padded(scratch)};
  }
  // A product needs the rows of x in the weight's dtype, unless they have it already, and a fragment. The fragment
  // lies on chip where it leaves room for slabs (Block::fragment).
  const Weight& w = weight->weight(args);
  const Field* const input = find_field(op.fields, op.traits.input);
  constexpr i64 kFragmentColumns = 256;
  const i64 rows = grid.axes()[0].step;
  const bool in_place = input && input->tensor(args).dtype == w.data.dtype;
  // A body whose operand is wider than the weight says so as its scratch.
  i64 operand = in_place ? 0 : padded(rows * ((w.cols() + 63) / 64 * 64) * size_of(w.data.dtype));
  if (op.scratch) operand = std::max(operand, padded(op.scratch(args, grid[0])));
  const i64 fragment = padded(fragment_bytes(rows, std::min<i64>(kFragmentColumns, grid.axes()[1].step)));
  return {chip_bytes, operand + (fragment <= chip_bytes / 3 ? 0 : fragment)};
}

// All that a call of one shape in one context needs except its addresses.
struct Plan {
  bool is_empty = false;
  LaunchConfig config = {};
  FunctionHandle function = nullptr;
  OpGrid grid = {};
  i64 workspace_bytes = 0;
  std::unique_ptr<KernelCall> kernel;  // runs in place of tiles; null: `why_no_kernel` says why
  std::string why_no_kernel;
};

constexpr u64 kMapAlignment = 16;  // bytes, of tensors that most whole kernels take

// Makes the plan of a call that is to run as a whole kernel, or says in the plan why it does not.
void plan_kernel(Plan& plan, const OpSpec& op, const std::byte* args, const OpConfig* wanted, u64 context,
                 bool is_aligned) {
  const Device& device = CallContext::device();
  const KernelTarget target = kernel_target(device);
  OpConfig config;
  if (wanted) config = find_config(op, args, {.gpu = true, .kernels = &target}, *wanted);
  if (wanted && !is_of_kernel(config)) {
    plan.why_no_kernel = "a configuration of its tiles was chosen";
    return;
  }
  KernelPlan kernel = op.kernel(args, target, config);
  plan.why_no_kernel = kernel.why_not;
  if (plan.why_no_kernel.empty() && !is_aligned && !kernel.from_anywhere)
    plan.why_no_kernel = fmt::format("a tensor does not begin at a multiple of {} bytes", kMapAlignment);
  if (!plan.why_no_kernel.empty()) return;
  plan.kernel = std::make_unique<KernelCall>(op, args, std::move(kernel), context, device);
  plan.workspace_bytes = plan.kernel->workspace_bytes();
}

// Plans a call that was checked, in the current context.
Plan plan_of(const OpSpec& op, CheckedCall call, const OpConfig* wanted, u64 context, bool is_aligned) {
  Plan plan;
  plan.is_empty = call.is_empty;
  if (call.is_empty) return plan;
  if (op.kernel) plan_kernel(plan, op, call.args.data(), wanted, context, is_aligned);
  if (plan.kernel) return plan;
  if (wanted && is_of_kernel(*wanted)) wanted = nullptr;
  require(op.args_size() + sizeof(OpGrid) <= kMostParamBytes,
          "[{}] its arguments are {} bytes; a kernel takes {}", op.name, op.args_size(),
          kMostParamBytes - int(sizeof(OpGrid)));
  const Device& device = CallContext::device();
  TilingTarget target{.gpu = true};
  const OpConfig config = wanted ? find_config(op, call.args.data(), target, *wanted) : OpConfig();
  if (wanted) target.config = &config;
  const StandaloneKernel kernel =
      StandaloneKernels::of_process().get(op, call.args.data(), config, context, device);
  TileGrid grid(op.axes(call.args.data(), target));
  // Products keep the tile sizes that their tensor cores want. A tile of another op may be as small as one row, or as
  // four elements of each thread. A configuration keeps its own tiles.
  if (!wanted && !takes_weight(op) && !takes_matrix(op))
    grid.refine(kTilesPerUnit * device.multiprocessors(),
                grid.axes().size() == 1 ? 1 : 4 * kStandaloneThreads);
  require(grid.tiles() <= kMostTiles, "[{}] the call has {} tiles; a launch takes {}", op.name, grid.tiles(),
          kMostTiles);
  const TileMemory memory = memory_of(op, call.args.data(), grid, kernel.chip_bytes);
  plan.function = kernel.function;
  for (size_t a = 0; a < grid.axes().size(); ++a)
    plan.grid.axes[a] = {grid.axes()[a].extent, grid.axes()[a].step, grid.axes()[a].tiles};
  plan.grid.chip_bytes = i32(memory.chip);
  plan.grid.spill.bytes = memory.spill;
  plan.workspace_bytes = memory.spill * device.multiprocessors();
  plan.config.grid[0] = u32(grid.tiles());
  plan.config.block[0] = kStandaloneThreads;
  // Spilled memory belongs to a multiprocessor. Its CTA takes all memory on chip, so that no second one can run
  // there.
  plan.config.shared_bytes = u32(memory.spill > 0 ? kernel.chip_bytes : memory.chip);
  return plan;
}

class GpuCaller : public OpCaller {
 public:
  CallNeeds needs(const OpSpec& op, const std::byte* args, const CallSite& site) override {
    const CallContext context(site);
    const bool is_aligned = CallLayout(op).misaligned(args, kMapAlignment) == 0;
    const Plan plan = plan_of(op, check_call(op, args), site.config, context.id(), is_aligned);
    if (plan.is_empty) return {};
    if (!plan.kernel)
      return {.workspace_bytes = plan.workspace_bytes,
              .tiles = plan.config.grid[0],
              .body = op.name + std::string(runs_variant(op) ? ".sm80" : ""),
              .why_no_kernel = plan.why_no_kernel};
    return {
        .workspace_bytes = plan.workspace_bytes, .tiles = plan.kernel->tiles(), .body = plan.kernel->body()};
  }

  std::optional<KernelTarget> kernels(const CallSite& site) override {
    const CallContext context(site);
    return kernel_target(CallContext::device());
  }

  void run(const OpSpec& op, const std::byte* args, const CallSite& site) override {
    static thread_local CallCache<Plan> cache;
    const CallContext context(site);
    const u32 misaligned = op.kernel ? cache.layout(op).misaligned(args, kMapAlignment) : 0;
    const u64 place = context.id() << 16 | misaligned;
    const Plan& plan = cache.find(op, args, site.config, place, [&](const CallLayout& layout) {
      CheckedCall call = check_call(op, args);
      call.require_outputs(op);
      if (!call.is_empty) check_memory(op, layout, args, CallContext::device());
      return plan_of(op, std::move(call), site.config, context.id(), misaligned == 0);
    });
    if (plan.is_empty) return;
    if (plan.workspace_bytes > 0) require_workspace(op, plan, site);
    if (plan.kernel) return plan.kernel->run(op, args, site);
    OpGrid grid = plan.grid;
    if (plan.workspace_bytes > 0) grid.spill.memory = reinterpret_cast<u8*>(site.workspace);
    LaunchConfig config = plan.config;
    config.stream = static_cast<StreamHandle>(site.stream);
    void* params[] = {&grid, const_cast<std::byte*>(args)};  // the driver copies both
    const int status = driver().launch_kernel.try_call(&config, plan.function, params, nullptr);
    if (status != kSuccess)
      fail(ErrorCode::kDevice, "[{}] cuLaunchKernelEx: {}: {} CTAs of {} threads, {} bytes of shared memory",
           op.name, status_text(status), config.grid[0], config.block[0], config.shared_bytes);
  }

  void wait(const CallSite& site) override {
    const CallContext context(site);
    const auto stream = static_cast<StreamHandle>(site.stream);
    require_running(stream, "a stream in capture cannot be waited for: run the call once before");
    driver().stream_synchronize(stream);
  }
  MemoryPlace::Kind memory() const override { return MemoryPlace::Kind::kGpu; }

 private:
  static void require_workspace(const OpSpec& op, const Plan& plan, const CallSite& site) {
    require(site.workspace && site.workspace_bytes >= plan.workspace_bytes,
            "[{}] the call has {} bytes of workspace; needs {}", op.name,
            site.workspace ? site.workspace_bytes : 0, plan.workspace_bytes);
    require(reinterpret_cast<u64>(site.workspace) % kScratchUnit == 0,
            "[{}] workspace begins at {:#x}; must be a multiple of {}", op.name,
            reinterpret_cast<u64>(site.workspace), kScratchUnit);
  }
};

}  // namespace

OpCaller& op_calls() {
  driver();  // throws where there is none
  static auto& caller = *new GpuCaller;
  return caller;
}

}  // namespace heddle::cuda
