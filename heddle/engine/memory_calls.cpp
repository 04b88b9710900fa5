#include "heddle/engine/memory_calls.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/engine/target.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/shape.h"

namespace heddle {
namespace {

// A tensor of one of the calls.
struct Place {
  size_t call = 0;
  const Field* field = nullptr;
  const u8 *begin = nullptr, *end = nullptr;
  u32 buffer = kNoBuffer;
};

class CallGraph {
 public:
  explicit CallGraph(std::span<const MemoryCall> calls) {
    for (size_t i = 0; i < calls.size(); ++i) add(calls[i]);
  }

  MemoryGraph run() {
    require(!calls_.empty(), "[graph] has no call with work; must have one or more");
    make_buffers();
    for (const Place& place : places_) bind(place);
    for (size_t i = 0; i < calls_.size(); ++i) append(i);
    return std::move(made_);
  }

 private:
  void add(const MemoryCall& given) {
    const OpSpec& op = *given.op;
    CheckedCall call = check_call(op, given.args.data());
    if (call.is_empty) return;
    call.require_outputs(op);
    const CallLayout layout(op);
    if (!layout.has_addresses(call.args.data())) layout.say_why(op, call.args.data());
    for (const Field& field : op.fields) {
      if (field.is_attribute()) continue;
      require(!field.is_weight(), "[{}] {} is a packed weight; a graph of single calls has none", op.name,
              field.name);
      add_place(op, field, field.tensor(call.args.data()));
    }
    calls_.push_back({given.op, std::move(call.args)});
  }

  void add_place(const OpSpec& op, const Field& field, const Tensor& tensor) {
    if (tensor.rank == 0) return;
    made_.rows = std::max(made_.rows, tensor.size[0]);
    i64 room = 1;  // elements from the first of a row to its last, rows being of any dimension
    for (int d = tensor.rank - 1; d >= 0; --d) {
      if (tensor.size[d] == 1) continue;
      if (tensor.stride[d] < room)
        fail(ErrorCode::kInvalidArgument,
             "[{}] {} has stride {} in dimension {}, whose parts have {} elements; they must not overlap or "
             "run "
             "backwards: give a contiguous tensor",
             op.name, field.name, tensor.stride[d], d, room);
      room = (tensor.size[d] - 1) * tensor.stride[d] + room;
    }
    places_.push_back({calls_.size(), &field, tensor.data, tensor.data + bytes_of(tensor.dtype, room)});
  }

  // Joins tensors that share bytes. Buffers are numbered in the order in which the calls name them, so that addresses
  // do not decide their numbers.
  void make_buffers() {
    std::vector<Place*> by_address;
    for (Place& place : places_) by_address.push_back(&place);
    std::ranges::stable_sort(by_address, {}, &Place::begin);
    std::vector<std::pair<const u8*, const u8*>> ranges;
    for (Place* place : by_address) {
      if (ranges.empty() || place->begin >= ranges.back().second)
        ranges.emplace_back(place->begin, place->end);
      ranges.back().second = std::max(ranges.back().second, place->end);
      place->buffer = u32(ranges.size() - 1);  // the number of its range, until it has one of its own
    }
    std::vector<u32> number(ranges.size(), kNoBuffer);
    for (Place& place : places_) {
      const auto [begin, end] = ranges[place.buffer];
      u32& buffer = number[place.buffer];
      if (buffer == kNoBuffer) {
        buffer = made_.graph.add_buffer({.name = fmt::format("{}.{}", name_of(place.call), place.field->name),
                                         .kind = BufferKind::kBorrowed,
                                         .bytes = end - begin});
        made_.memory.base.push_back(const_cast<std::byte*>(reinterpret_cast<const std::byte*>(begin)));
        made_.memory.panels.push_back(nullptr);
        made_.key += fmt::format("{},", end - begin);
      }
      place.buffer = buffer;
    }
  }

  void bind(const Place& place) {
    Tensor& tensor = place.field->tensor(calls_[place.call].args.data());
    tensor.buffer = place.buffer;
    tensor.offset = tensor.data - reinterpret_cast<u8*>(made_.memory.base[place.buffer]);
    tensor.data = nullptr;
  }

  void append(size_t i) {
    MemoryCall& call = calls_[i];
    made_.key += fmt::format("{}:", call.op->name);
    made_.key.append(reinterpret_cast<const char*>(call.args.data()), call.args.size());
    made_.graph.append(*call.op, name_of(i), std::move(call.args));
  }

  std::string name_of(size_t call) const { return fmt::format("{}.{}", call, calls_[call].op->name); }

  std::vector<MemoryCall> calls_;
  std::vector<Place> places_;
  MemoryGraph made_;
};

}  // namespace

MemoryGraph graph_of_calls(std::span<const MemoryCall> calls) {
  return CallGraph(calls).run();
}

Program compile_calls(const MemoryGraph& calls, const std::string& executor, const std::string& scheduler,
                      i32 workers, const OwnPolicy& own_policy) {
  const ExecutorSpec& spec = get_executor(executor);
  require(workers >= 0, "[graph] workers = {}; must be 1 or more, or 0: as many as the device has", workers);
  if (workers == 0) workers = spec.workers ? spec.workers(0) : allowed_cores();
  const Target target = spec.space ? gpu_target(workers) : cpu_target(workers);
  CompileOptions options;
  options.scheduler = scheduler;
  options.own_policy = own_policy;
  options.tiling = target.tiling;
  options.passes = {.fuse_epilogues = false, .fuse_prologues = false};
  Graph graph = calls.graph;
  Placement placement = place(graph, options.passes, target.topology);
  Program program = compile(std::move(graph), {.rows = calls.rows}, std::move(placement), options);
  program.name = "calls";
  check_or_throw(program);
  return program;
}

}  // namespace heddle
