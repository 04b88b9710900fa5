#include "heddle/backend/cuda/executors/device_program.h"

#include <algorithm>
#include <cstring>

#include "heddle/backend/cuda/executors/fault_report.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// The data that the device reports to the host.
struct Report {
  FaultRecord fault;
  u32 tiles[2] = {};  // run, dead
  u32 verdict = 0;
};

template <class T>
T* as_pointer(std::byte* address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace

template <class T>
std::byte* DeviceProgram::put(std::span<const T> values) {
  DeviceBuffer buffer(std::max<size_t>(values.size_bytes(), 16), device_);
  upload(buffer.data(), values.data(), values.size_bytes(), stream_);
  stream_.synchronize();
  return owned_.emplace_back(std::move(buffer)).data();
}

void DeviceProgram::put_args(const std::vector<BoundCall>& calls) {
  std::vector<std::byte> bytes;
  std::vector<u32>& begins = call_args_;
  std::vector<LiveRows> live;
  for (size_t c = 0; c < calls.size(); ++c) {
    begins.push_back(u32(bytes.size()));
    live.push_back(program_.calls[c].live);
    for (const std::vector<std::byte>& args : calls[c].args) {
      bytes.insert(bytes.end(), args.begin(), args.end());
      bytes.resize((bytes.size() + 15) / 16 * 16);
    }
  }
  begins.push_back(u32(bytes.size()));
  params_.args = as_pointer<u8>(put(std::span<const std::byte>(bytes)));
  params_.call_args = as_pointer<u32>(put(std::span<const u32>(begins)));
  params_.call_live = as_pointer<LiveRows>(put(std::span<const LiveRows>(live)));
}

namespace {

std::vector<Module> load(std::span<const CompileRequest> sources, const DeviceCode* code,
                         const Device& device) {
  std::vector<Module> modules;
  if (!code)
    for (const Compiled& compiled : compile(sources)) modules.emplace_back(compiled.cubin, device);
  else
    for (const CompileRequest& source : sources) {
      const auto found = code->find(code_name(source));
      if (found == code->end())
        fail(ErrorCode::kUnsupported,
             "[{}] is not among the {} pieces of code that were compiled ahead of time: wanted is {} for {}",
             source.name, code->size(), code_name(source), source.arch);
      modules.emplace_back(found->second, device);
    }
  return modules;
}

}  // namespace

// Returns the bytes of an operand and fragments of the largest tile, all of them off chip.
i64 DeviceProgram::spill_bytes() const {
  i64 most = 0;
  std::vector<i64> of_call;
  for (const Call& call : program_.calls) {
    i64 columns = 0;
    const Node node = program_.node_of(call);
    for (const Part& part : node.parts)
      for (const Field& field : part.op->fields)
        if (!field.is_attribute() && field.elements(part.args.data()).rank > 0)
          columns = std::max<i64>(columns, field.elements(part.args.data()).last());
    of_call.push_back(columns);
  }
  for (const auto& stream : program_.workers)
    for (const Instruction& instruction : stream) {
      if (instruction.opcode >= kNopOpcode) continue;
      const i64 rows = std::max(1, instruction.tile[1] - instruction.tile[0]);
      most = std::max(most, rows * (of_call[instruction.call] * 4 + 4096));
    }
  return (most + (1 << 20)) / 128 * 128;
}

DeviceProgram::DeviceProgram(const Program& program, const Memory& memory, const ExecutorOptions& options,
                             std::span<const std::vector<Instruction>> streams,
                             std::span<const CompileRequest> sources)
    : program_(program),
      device_(Device::at(options.device)),
      scratch_bytes_(KernelTraits::of(program, device_.arch()).scratch_bytes),
      slot_bytes_(KernelTraits::of(program, device_.arch()).slot_bytes),
      stream_(device_),
      modules_(load(sources, options.code, device_)),
      num_places_(streams.data() == program.workers.data() ? streams.size() : 0),
      report_(sizeof(Report) + num_places_ * sizeof(WorkerPlace), device_) {
  std::vector<Instruction> all;
  std::vector<u32> begins;
  for (const auto& stream : streams) {
    begins.push_back(u32(all.size()));
    all.insert(all.end(), stream.begin(), stream.end());
  }
  params_.instructions = as_pointer<Instruction>(put(std::span<const Instruction>(all)));
  params_.stream_begin = as_pointer<u32>(put(std::span<const u32>(begins)));
  put_args(bind_calls(program, memory));
  for (size_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].info.kind == BufferKind::kStepHost) {
      params_.host = reinterpret_cast<const StepHost*>(memory.base[b]);
      params_.host_bytes = u32(program.buffers[b].info.bytes);
    }
  counter_bytes_ = i64(program.counters.size()) * kCounterStride * 4;
  owned_.emplace_back(size_t(std::max<i64>(counter_bytes_, 4)), device_);
  params_.counters = as_pointer<u32>(owned_.back().data());
  clear_edges();
  params_.spill.bytes = spill_bytes();
  owned_.emplace_back(size_t(params_.spill.bytes) * size_t(device_.multiprocessors()), device_);
  params_.spill.memory = as_pointer<u8>(owned_.back().data());
  fill(report_.data(), 0, report_.size(), stream_);
  auto* report = as_pointer<Report>(report_.data());
  params_.fault = &report->fault;
  params_.tiles = report->tiles;
  verdict_ = &report->verdict;
  params_.places = reinterpret_cast<WorkerPlace*>(report + 1);
  params_.ring_slots = kMaxRingSlots;
  params_.spin_limit = u32(std::min(options.hang_limit_ms * 1000, 4e9));
  params_.panel_limit = u64(options.hang_limit_ms * device_.max_clock_khz());
}

Kernel DeviceProgram::kernel(size_t index, const std::string& name) {
  Kernel kernel = modules_[index].kernel(name);
  const i64 room = device_.shared_per_block_optin() - kernel.attributes().shared_bytes;
  params_.ring_slots = std::min<u32>(params_.ring_slots, u32((room - scratch_bytes_) / slot_bytes_));
  // A loader that waits for a copy must not have begun another to the same slot, because a barrier tells its phases
  // apart by parity alone.
  params_.in_flight = std::min(params_.in_flight, params_.ring_slots);
  params_.in_flight_waiting = std::min(params_.in_flight_waiting, params_.ring_slots);
  shared_bytes_ = scratch_bytes_ + params_.ring_slots * slot_bytes_;
  kernel.set_max_shared(int(shared_bytes_));
  return kernel;
}

Kernel DeviceProgram::whole_kernel(size_t index, const std::string& name, i64 bytes) {
  Kernel kernel = modules_[index].kernel(name);
  kernel.set_max_shared(int(bytes));
  return kernel;
}

KernelParams DeviceProgram::params(u32 first_epoch, u32 steps) const {
  KernelParams params = params_;
  params.first_epoch = first_epoch;
  params.steps = steps;
  return params;
}

void DeviceProgram::clear_edges() {
  fill(reinterpret_cast<std::byte*>(params_.counters), 0, size_t(std::max<i64>(counter_bytes_, 4)), stream_);
}

RunReport DeviceProgram::finish(int steps, std::string_view executor) {
  std::vector<std::byte> bytes(report_.size());
  download(bytes.data(), report_.data(), bytes.size(), stream_);
  fill(report_.data(), 0, report_.size(), stream_);
  stream_.synchronize();
  const auto& report = *as_pointer<Report>(bytes.data());
  const FaultRecord& fault = report.fault;
  if (fault.awaited == Awaited::kNothing && fault.stop == 0)
    return {.steps = steps, .tiles_run = report.tiles[0], .tiles_dead = report.tiles[1]};
  std::vector<u32> words(size_t(counter_bytes_) / 4), counters;
  download(words.data(), reinterpret_cast<std::byte*>(params_.counters), words.size() * 4, stream_);
  stream_.synchronize();
  for (size_t c = 0; c < program_.counters.size(); ++c) counters.push_back(words[c * kCounterStride]);
  clear_edges();
  const auto* places = reinterpret_cast<const WorkerPlace*>(&report + 1);
  throw Error(ErrorCode::kDevice, text_of({.executor = executor,
                                           .program = program_,
                                           .fault = fault,
                                           .limit_ms = params_.spin_limit / 1e3,
                                           .counters = counters,
                                           .places = {places, num_places_}}));
}

}  // namespace heddle::cuda
