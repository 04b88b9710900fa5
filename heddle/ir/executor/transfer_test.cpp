#include "heddle/ir/executor/transfer.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/executor/memory_space.h"

namespace heddle {
namespace {

std::byte* at(auto& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Memory at addresses of the host. Reads wait until they may begin; one address fails.
class SlowSpace : public MemorySpace {
 public:
  std::byte* allocate(size_t) override { return nullptr; }
  void release(std::byte*) override {}
  void write(std::byte* to, const void* from, size_t bytes) override {
    if (to == broken) fail(ErrorCode::kDevice, "[space] the device is gone");
    std::memcpy(to, from, bytes);
  }
  void read(void* to, const std::byte* from, size_t bytes) override {
    open.wait(false);
    std::memcpy(to, from, bytes);
  }
  i64 available() const override { return -1; }

  std::atomic<bool> open = false;
  std::byte* broken = nullptr;
};

using Way = Transfer::Way;

TEST(Transfers, CopyInOrderOnTheHost) {
  std::vector<int> a{1, 2, 3, 4}, b(4), c(4);
  const auto queue = transfers_of(nullptr);
  const TransferEvent first = queue->start({.to = at(b), .from = at(a), .bytes = 16});
  const TransferEvent second = queue->start({.to = at(c), .from = at(b), .bytes = 16});
  second->wait();
  EXPECT_TRUE(first->done());
  EXPECT_EQ(c, a);
  queue->start({.to = at(c), .from = at(a), .bytes = 0});
  queue->finish();
}

TEST(Transfers, WaitForOtherQueues) {
  SlowSpace space;
  std::vector<int> a{7}, b(1), c(1);
  const auto reads = transfers_of(&space), others = transfers_of(nullptr);
  const TransferEvent read =
      reads->start({.way = Way::kFromSpace, .to = at(b), .from = at(a), .bytes = sizeof(int)});
  const TransferEvent copy =
      others->start({.to = at(c), .from = at(b), .bytes = sizeof(int), .after = {read, read}});
  EXPECT_FALSE(read->done());
  EXPECT_FALSE(copy->done());
  space.open = true, space.open.notify_all();
  copy->wait();
  EXPECT_EQ(c, a);
}

TEST(Transfers, ErrorsAreThrownAtEachWaitAndAtTheEnd) {
  SlowSpace space;
  std::vector<int> a{7}, b(1), c{5};
  space.broken = at(b);
  const auto queue = transfers_of(&space), other = transfers_of(nullptr);
  const TransferEvent bad = queue->start({.to = at(b), .from = at(a), .bytes = sizeof(int)});
  const TransferEvent after =
      other->start({.to = at(c), .from = at(b), .bytes = sizeof(int), .after = {bad}});
  const TransferEvent good = queue->start({.way = Way::kToSpace, .to = at(a), .from = at(a), .bytes = 0});
  for (int round = 0; round < 2; ++round)
    for (const TransferEvent& failed : {bad, after})
      EXPECT_EQ(message_of([&] { failed->wait(); }), "[space] the device is gone");
  good->wait();
  EXPECT_TRUE(bad->done());
  EXPECT_EQ(c[0], 5) << "it was not copied";
  EXPECT_EQ(message_of([&] { queue->finish(); }), "[space] the device is gone");
  EXPECT_EQ(message_of([&] { queue->finish(); }), "no error") << "it was told";
}

TEST(Transfers, AQueueEndsItsCopiesBeforeItGoes) {
  SlowSpace space;
  std::vector<int> a{7}, b(1), c(1);
  std::thread opener;
  {
    const auto queue = transfers_of(&space);
    queue->start({.way = Way::kFromSpace, .to = at(b), .from = at(a), .bytes = sizeof(int)});
    queue->start({.way = Way::kInSpace, .to = at(c), .from = at(b), .bytes = sizeof(int)});
    opener = std::thread([&] { space.open = true, space.open.notify_all(); });
  }
  opener.join();
  EXPECT_EQ(c, a);
}

TEST(HostArena, GivesPiecesUntilItIsFull) {
  HostArena arena(nullptr, 300);
  std::byte* const first = arena.take(100);
  EXPECT_EQ(arena.take(100) - first, 128);
  EXPECT_EQ(reinterpret_cast<size_t>(first) % 128, 0u);
  EXPECT_EQ(first[99], std::byte{0});
  EXPECT_EQ(message_of([&] { (void)arena.take(45); }), "[arena] 45 bytes are asked for; 44 of 300 are left");
  (void)arena.take(44);
  EXPECT_EQ(message_of([&] { (void)arena.take(1); }), "[arena] 1 bytes are asked for; 0 of 300 are left");
  arena.reset();
  EXPECT_EQ(arena.take(300), first);
}

}  // namespace
}  // namespace heddle
