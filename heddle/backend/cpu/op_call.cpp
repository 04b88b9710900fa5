#include "heddle/backend/cpu/op_call.h"

#include <functional>

#include "heddle/backend/cpu/call_pool.h"
#include "heddle/backend/cpu/simd.h"
#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/ir/call/call_cache.h"
#include "heddle/ir/shape.h"
#include "heddle/ir/tile_grid.h"

namespace heddle {
namespace {

// Waking a helper takes as long as a core needs for this many bytes.
constexpr i64 kSmallCall = 64 << 10;

// All that a call of one shape needs except its addresses.
struct Plan {
  bool is_empty = false;
  const void* body = nullptr;  // null: the op's own body
  TileGrid grid = {};
  bool is_small = false;
};

i64 bytes_of(const OpSpec& op, const std::byte* args) {
  i64 bytes = 0;
  for (const Field& field : op.fields) {
    if (field.is_attribute()) continue;
    const Tensor& tensor = field.elements(args);
    if (tensor.rank == 0) continue;
    bytes += field.is_weight() ? field.weight(args).bytes() : elements(tensor) * size_of(tensor.dtype);
  }
  return bytes;
}

// Plans a call that was checked.
Plan plan_of(const OpSpec& op, CheckedCall call, const OpConfig* config) {
  if (call.is_empty) return {.is_empty = true};
  if (config) find_config(op, call.args.data(), {}, *config);  // throws where the op has no such one
  Plan plan{.body = op_tiles().body_of(op.name),
            .grid = TileGrid(op.axes(call.args.data(), {.config = config}))};
  if (!plan.body && !op.body) fail(ErrorCode::kUnsupported, "[{}] has no tile body in this build", op.name);
  plan.is_small = bytes_of(op, call.args.data()) < kSmallCall;
  return plan;
}

class CpuCaller : public OpCaller {
 public:
  CallNeeds needs(const OpSpec& op, const std::byte* args, const CallSite& site) override {
    const Plan plan = plan_of(op, check_call(op, args), site.config);
    return {.tiles = plan.grid.tiles(), .body = op.name};
  }

  void run(const OpSpec& op, const std::byte* args, const CallSite& site) override {
    static thread_local CallCache<Plan> cache;
    require(site.threads >= 0, "[{}] threads = {}; must be 0 (one for each core) or more", op.name,
            site.threads);
    const Plan& plan = cache.find(op, args, site.config, 0, [&](const CallLayout&) {
      CheckedCall call = check_call(op, args);
      call.require_outputs(op);
      return plan_of(op, std::move(call), site.config);
    });
    if (plan.is_empty) return;
    const OpTiles& tiles = op_tiles();
    const auto work = [&](i64 i) {
      plan.body ? tiles.run(plan.body, args, plan.grid[i]) : op.body(args, plan.grid[i]);
    };
    if (plan.is_small || site.threads == 1) {
      for (i64 i = 0; i < plan.grid.tiles(); ++i) work(i);
      return;
    }
    share_work(site.threads > 0 ? site.threads : allowed_cores(), plan.grid.tiles(), std::cref(work));
  }
  MemoryPlace::Kind memory() const override { return MemoryPlace::Kind::kHost; }
};

}  // namespace

OpCaller& cpu_op_calls() {
  static auto& caller = *new CpuCaller;
  return caller;
}

}  // namespace heddle
