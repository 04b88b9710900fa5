// Caches the plans of one thread's calls: a plan for each op and shape, found without a lock and without a
// name. Backends keep their caches in thread-local storage.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "heddle/ir/call/op_call.h"

namespace heddle {

template <class Plan>
class CallCache {
 public:
  // The plan of a call with these arguments and this configuration (null: the default) at `place` (which the
  // backend defines). Calls make() if there is none yet. The plans of an op share kPlans slots, so a new shape
  // may evict another one.
  template <class Make>
  const Plan& find(const OpSpec& op, const std::byte* args, const OpConfig* config, u64 place, Make&& make) {
    static const OpConfig plain;
    const OpConfig& chosen = config ? *config : plain;
    OpPlans& plans = plans_of(op);
    u64 hash = plans.layout.hash(args) ^ place * kMix;
    for (const auto& [name, value] : chosen.values()) hash = (hash ^ u64(value)) * kMix;
    Slot& slot = plans.slots[(hash ^ hash >> 32) % kPlans];
    if (!slot.plan || slot.place != place || slot.config != chosen ||
        !plans.layout.same(slot.args.data(), args)) {
      auto plan = std::make_unique<Plan>(make(plans.layout));
      slot = {place, chosen, {args, args + op.args_size()}, std::move(plan)};
    }
    if (!slot.plan->is_empty && !plans.layout.has_addresses(args)) plans.layout.say_why(op, args);
    return *slot.plan;
  }

  // Knows where the op's arguments have addresses.
  const CallLayout& layout(const OpSpec& op) { return plans_of(op).layout; }

 private:
  static constexpr size_t kPlans = 64;
  static constexpr u64 kMix = 0x9e3779b97f4a7c15u;

  struct Slot {
    u64 place = 0;
    OpConfig config;
    std::vector<std::byte> args;
    std::unique_ptr<Plan> plan;
  };
  struct OpPlans {
    explicit OpPlans(const OpSpec& op) : layout(op) {}
    CallLayout layout;
    std::array<Slot, kPlans> slots;
  };

  OpPlans& plans_of(const OpSpec& op) {
    if (last_ != &op) {
      std::unique_ptr<OpPlans>& plans = ops_[&op];
      if (!plans) plans = std::make_unique<OpPlans>(op);
      last_ = &op, last_plans_ = plans.get();
    }
    return *last_plans_;
  }

  std::unordered_map<const OpSpec*, std::unique_ptr<OpPlans>> ops_;
  const OpSpec* last_ = nullptr;
  OpPlans* last_plans_ = nullptr;
};

}  // namespace heddle
