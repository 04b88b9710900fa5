#include "heddle/engine/upload.h"

#include <utility>

namespace heddle {

namespace {

constexpr size_t kAlignment = 128;  // bytes; pieces of an arena have it

size_t room_for(size_t most) {
  return 2 * ((most + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

Upload::Upload(MemorySpace& space, size_t most)
    : arena_(&space, room_for(most)),
      pieces_{arena_.take(most), arena_.take(most)},
      queue_(space.transfers()) {}

std::byte* Upload::piece() {
  if (const TransferEvent copy = std::exchange(copies_[next_], nullptr)) copy->wait();
  return pieces_[next_];
}

void Upload::send(std::byte* to, size_t bytes) {
  copies_[next_] = queue_->start({.to = to, .from = pieces_[next_], .bytes = bytes});
  next_ = 1 - next_;
}

}  // namespace heddle
