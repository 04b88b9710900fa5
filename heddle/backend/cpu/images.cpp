#include "heddle/backend/cpu/images.h"

#include <algorithm>
#include <cstring>

namespace heddle {

Images::Images(const Program& program, const Memory& memory)
    : buffer_offset_(program.buffers.size(), -1), real_(memory) {
  i64 size = 0;
  auto add_plane = [&](std::byte* real, i64 bytes) {
    planes_.push_back({real, size, bytes});
    size += (bytes + 63) / 64 * 64;
    return planes_.back().offset;
  };
  i64 arena = -1;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (is_immutable(buffer.info.kind)) continue;
    if (buffer.arena_offset < 0) {
      buffer_offset_[b] = add_plane(memory.base[b], buffer.info.bytes);
    } else {
      if (arena < 0) arena = add_plane(memory.base[b] - buffer.arena_offset, program.arena_bytes);
      buffer_offset_[b] = arena + buffer.arena_offset;
    }
  }
  images_.assign(program.workers.size(), std::vector<std::byte>(size_t(size) + 64));
  logs_.resize(program.workers.size());
  const Clock none(program.workers.size(), 0);
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
  for (auto& log : logs_) log.clear();
  for (auto* clocks : {&clocks_, &counter_clocks_})
    for (Clock& clock : *clocks) std::fill(clock.begin(), clock.end(), size_t{0});
}

void Images::finish() {
  std::vector<const Store*> all;
  for (const auto& log : logs_)
    for (const Store& store : log) all.push_back(&store);
  std::sort(all.begin(), all.end(), [](const Store* a, const Store* b) { return a->order < b->order; });
  for (const Store* store : all)
    for (const Plane& plane : planes_)
      if (store->offset >= plane.offset && store->offset < plane.offset + plane.bytes)
        std::memcpy(plane.real + (store->offset - plane.offset), store->data.data(), store->data.size());
}

void Images::stored(u32 worker, std::span<const AccessGuard::Run> runs) {
  for (const auto& run : runs)
    logs_[worker].push_back({order_++, run.begin - aligned(images_[worker]), {run.begin, run.end}});
  clocks_[worker][worker] = logs_[worker].size();
}

void Images::signal(u32 worker, u32 counter) {
  for (size_t w = 0; w < clocks_.size(); ++w) {
    size_t& known = counter_clocks_[counter][w];
    known = std::max(known, clocks_[worker][w]);
  }
}

void Images::wait(u32 worker, u32 counter) {
  std::vector<const Store*> fresh;
  for (size_t w = 0; w < clocks_.size(); ++w)
    for (size_t& known = clocks_[worker][w]; known < counter_clocks_[counter][w]; ++known)
      fresh.push_back(&logs_[w][known]);
  std::sort(fresh.begin(), fresh.end(), [](const Store* a, const Store* b) { return a->order < b->order; });
  for (const Store* store : fresh)
    std::memcpy(aligned(images_[worker]) + store->offset, store->data.data(), store->data.size());
}

}  // namespace heddle
