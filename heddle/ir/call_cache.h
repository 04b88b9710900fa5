// What the calls of one thread have in common with earlier ones: a plan for each op and shape, found without a lock and
// without a name. Backends keep theirs in thread-local storage.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "heddle/ir/op_call.h"

namespace heddle {

template <class Plan>
class CallCache {
 public:
  // The plan of a call with such arguments at `place`, whatever that is for the backend; make() where there is none yet.
  // Plans of an op share kPlans places: those of one shape push out those of another at times.
  template <class Make>
  const Plan& find(const OpSpec& op, const std::byte* args, u64 place, Make&& make) {
    OpPlans& plans = plans_of(op);
    const u64 hash = plans.layout.hash(args) ^ place * 0x9e3779b97f4a7c15u;
    Slot& slot = plans.slots[(hash ^ hash >> 32) % kPlans];
    if (!slot.plan || slot.place != place || !plans.layout.same(slot.args.data(), args)) {
      auto plan = std::make_unique<Plan>(make(plans.layout));
      slot = {place, {args, args + op.args_size()}, std::move(plan)};
    }
    if (!slot.plan->is_empty && !plans.layout.has_addresses(args)) plans.layout.say_why(op, args);
    return *slot.plan;
  }

 private:
  static constexpr size_t kPlans = 64;

  struct Slot {
    u64 place = 0;
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
