#include "heddle/backend/cpu/images.h"

#include <algorithm>
#include <cstring>

namespace heddle {

Images::Images(const Program& program, const Memory& memory)
    : buffer_offset_(program.buffers.size(), -1), real_(memory) {
  i64 size = 0;
  auto add_plane = [&](std::byte* real, i64 bytes, bool tagged) {
    planes_.push_back({real, size, bytes, tagged});
    size += (bytes + 63) / 64 * 64;
    return planes_.back().offset;
  };
  i64 arena = -1;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (is_immutable(buffer.info.kind)) continue;
    if (buffer.arena_offset < 0) {
      buffer_offset_[b] = add_plane(memory.base[b], buffer.info.bytes, buffer.info.tagged);
    } else {
      if (arena < 0) arena = add_plane(memory.base[b] - buffer.arena_offset, program.arena_bytes, false);
      buffer_offset_[b] = arena + buffer.arena_offset;
    }
  }
  images_.assign(program.workers.size(), std::vector<std::byte>(size_t(size) + 64));
  logs_.resize(program.workers.size());
  Clock none;
  for (auto& known : none.known) known.assign(program.workers.size(), 0);
  clocks_.assign(program.workers.size(), none);
  counter_clocks_.assign(program.counters.size(), none);
}

Memory Images::memory(u32 worker) const {
  Memory memory = real_;
  auto* image = const_cast<std::byte*>(images_[worker].data());
  image += (64 - reinterpret_cast<uintptr_t>(image) % 64) % 64;
  for (size_t b = 0; b < buffer_offset_.size(); ++b)
    if (buffer_offset_[b] >= 0) memory.base[b] = image + buffer_offset_[b];
  return memory;
}

namespace {
std::byte* aligned(std::vector<std::byte>& image) {
  return image.data() + (64 - reinterpret_cast<uintptr_t>(image.data()) % 64) % 64;
}
}  // namespace

void Images::begin() {
  for (auto& image : images_)
    for (const Plane& plane : planes_)
      std::memcpy(aligned(image) + plane.offset, plane.real, size_t(plane.bytes));
  for (auto& logs : logs_)
    for (Log& log : logs) log.clear();
  for (auto* clocks : {&clocks_, &counter_clocks_})
    for (Clock& clock : *clocks)
      for (auto& known : clock.known) std::fill(known.begin(), known.end(), size_t{0});
}

void Images::finish() {
  std::vector<const Store*> all;
  for (const auto& logs : logs_)
    for (const Log& log : logs)
      for (const Store& store : log) all.push_back(&store);
  std::sort(all.begin(), all.end(), [](const Store* a, const Store* b) { return a->order < b->order; });
  for (const Store* store : all)
    for (const Plane& plane : planes_)
      if (store->offset >= plane.offset && store->offset < plane.offset + plane.bytes)
        std::memcpy(plane.real + (store->offset - plane.offset), store->data.data(), store->data.size());
}

void Images::stored(u32 worker, std::span<const AccessGuard::Run> runs) {
  for (const auto& run : runs) {
    const i64 offset = run.begin - aligned(images_[worker]);
    bool tagged = false;
    for (const Plane& plane : planes_)
      if (offset >= plane.offset && offset < plane.offset + plane.bytes) tagged = plane.tagged;
    logs_[worker][tagged].push_back({order_++, offset, {run.begin, run.end}});
  }
  for (int kind = 0; kind < 2; ++kind)
    clocks_[worker].known[kind][worker] = logs_[worker][size_t(kind)].size();
}

void Images::signal(u32 worker, u32 counter) {
  for (int kind = 0; kind < 2; ++kind)
    for (size_t w = 0; w < clocks_.size(); ++w) {
      size_t& known = counter_clocks_[counter].known[kind][w];
      known = std::max(known, clocks_[worker].known[kind][w]);
    }
}

void Images::wait(u32 worker, const Instruction& instruction, int index) {
  learn(worker, counter_clocks_[instruction.waits[index].counter],
        instruction.wait_kind(index) == EdgeKind::kTagged);
}

void Images::learn(u32 worker, const Clock& clock, bool tagged_only) {
  std::vector<const Store*> fresh;
  for (size_t kind = tagged_only ? 1 : 0; kind < 2; ++kind)
    for (size_t w = 0; w < clocks_.size(); ++w) {
      size_t& known = clocks_[worker].known[kind][w];
      for (; known < clock.known[kind][w]; ++known) fresh.push_back(&logs_[w][kind][known]);
    }
  std::sort(fresh.begin(), fresh.end(), [](const Store* a, const Store* b) { return a->order < b->order; });
  for (const Store* store : fresh)
    std::memcpy(aligned(images_[worker]) + store->offset, store->data.data(), store->data.size());
}

}  // namespace heddle
