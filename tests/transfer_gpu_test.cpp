// Copies that run while the host works, to and from a GPU's memory, and weights that are packed to it in pieces. On the
// emulated GPU copies run as late as they may: a missing wait shows there.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "heddle/backend/cuda/executors/device_space.h"
#include "heddle/backend/cuda/executors/gpu_test.h"
#include "heddle/base/error.h"
#include "heddle/engine/upload.h"
#include "heddle/engine/weights.h"
#include "heddle/ir/executor/transfer.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/caller_tensors.h"
#include "tests/support/golden.h"

namespace heddle::cuda {
namespace {

using Way = Transfer::Way;

std::vector<std::byte> pattern(size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i < bytes; ++i) made[i] = std::byte(u8((i + 1) * 2654435761u * seed >> 24));
  return made;
}

class TransferGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_unavailable().empty()) GTEST_SKIP() << "no GPU can be used here: " << why_unavailable();
    ::setenv("EMULATED_GPU_LATE", "1", 1);
    space_ = &device_space(Device::at(0));
  }
  void TearDown() override { ::unsetenv("EMULATED_GPU_LATE"); }
  static bool is_emulated() { return Device::at(0).name() == "emulated GPU"; }
  MemorySpace& space() const { return *space_; }

  // Memory of the GPU that is freed at the end of the test.
  std::byte* room(size_t bytes) {
    return rooms_.emplace_back(space_->allocate(bytes), Release{space_}).get();
  }

 private:
  struct Release {
    MemorySpace* space;
    void operator()(std::byte* address) const { space->release(address); }
  };
  MemorySpace* space_ = nullptr;
  std::vector<std::unique_ptr<std::byte, Release>> rooms_;
};

TEST_F(TransferGpu, BytesComeBack) {
  constexpr size_t kBytes = 100'000;
  const std::vector<std::byte> sent = pattern(kBytes, 1);
  HostArena arena(&space(), 2 * kBytes + 128);
  std::byte *const out = arena.take(kBytes), *const back = arena.take(kBytes);
  std::memcpy(out, sent.data(), kBytes);
  std::byte *const a = room(kBytes), *const b = room(kBytes);
  const auto up = space().transfers(), down = space().transfers();
  const TransferEvent there = up->start({.way = Way::kToSpace, .to = a, .from = out, .bytes = kBytes});
  const TransferEvent moved = up->start({.way = Way::kInSpace, .to = b, .from = a, .bytes = kBytes});
  const TransferEvent here =
      down->start({.way = Way::kFromSpace, .to = back, .from = b, .bytes = kBytes, .after = {there, moved}});
  if (is_emulated()) {
    EXPECT_FALSE(there->done());
    EXPECT_NE(std::memcmp(back, sent.data(), kBytes), 0) << "nobody has waited";
  }
  here->wait();
  EXPECT_EQ(std::memcmp(back, sent.data(), kBytes), 0);
  EXPECT_TRUE(moved->done());
  up->finish();
  // Memory that is not page-locked, after a copy of the host's.
  std::vector<std::byte> plain(kBytes), copied(kBytes);
  const auto host = transfers_of(nullptr);
  const TransferEvent near = host->start({.to = plain.data(), .from = sent.data(), .bytes = kBytes});
  up->start({.way = Way::kToSpace, .to = a, .from = plain.data(), .bytes = kBytes, .after = {near}});
  up->start({.way = Way::kFromSpace, .to = copied.data(), .from = a, .bytes = kBytes});
  up->finish();
  EXPECT_EQ(copied, sent);
}

TEST_F(TransferGpu, AnErrorIsThrownAtTheWaitAndReachesWhatFollows) {
  if (!is_emulated()) GTEST_SKIP() << "an illegal address ends the process's context on a real GPU";
  std::byte* const a = room(128);
  std::vector<std::byte> bytes(1 << 20), other(4);
  const auto queue = space().transfers(), host = transfers_of(nullptr);
  const TransferEvent bad = queue->start({.to = a, .from = bytes.data(), .bytes = bytes.size()});
  const TransferEvent after =
      host->start({.to = other.data(), .from = bytes.data(), .bytes = 4, .after = {bad}});
  for (const TransferEvent& event : {bad, bad, after}) EXPECT_THROW(event->wait(), Error);
  EXPECT_TRUE(bad->done());
  EXPECT_THROW(queue->finish(), Error);
  const auto next = space().transfers();
  next->start({.to = a, .from = bytes.data(), .bytes = 128});
  next->finish();
}

TEST_F(TransferGpu, PiecesAreNotWrittenBeforeTheyAreCopied) {
  constexpr size_t kPiece = 4096, kPieces = 7;
  std::byte* const to = room(kPiece * kPieces);
  {
    Upload upload(space(), kPiece);
    for (size_t i = 0; i < kPieces; ++i) {
      const std::vector<std::byte> sent = pattern(kPiece, unsigned(i + 1));
      std::memcpy(upload.piece(), sent.data(), kPiece);
      upload.send(to + i * kPiece, kPiece);
    }
    upload.finish();
  }
  for (size_t i = 0; i < kPieces; ++i) {
    std::vector<std::byte> back(kPiece);
    space().read(back.data(), to + i * kPiece, kPiece);
    EXPECT_EQ(back, pattern(kPiece, unsigned(i + 1))) << "piece " << i;
  }
}

// Reads all that a store holds, by name.
std::map<std::string, std::vector<std::byte>> content(const ModelGraph& graph, const WeightStore& store,
                                                      MemorySpace* space) {
  std::map<std::string, std::vector<std::byte>> made;
  const auto read = [&](const std::string& name, size_t bytes) {
    made[name].resize(bytes);
    copy_from(space, made[name].data(), store.data(name), bytes);
  };
  for (const Buffer& buffer : graph.graph.buffers())
    if (buffer.kind == BufferKind::kWeight) read(buffer.name, size_t(buffer.bytes));
  for (const auto& [name, vector] : graph.vectors) read(name, size_t(vector.size) * 4);
  return made;
}

// The tensors of a checkpoint in the memory of a GPU, each number a little changed.
std::vector<CallerTensor> changed(const std::string& folder, MemorySpace& space,
                                  const std::function<std::byte*(size_t)>& room) {
  const Checkpoint checkpoint(folder);
  std::vector<CallerTensor> tensors;
  for (const std::string& name : checkpoint.names()) {
    const TensorView view = checkpoint.weight(name);
    std::vector<std::byte> bytes(view.data.begin(), view.data.end());
    for (size_t i = 0; i < bytes.size(); i += size_t(size_of(view.dtype))) bytes[i] ^= std::byte{1};
    std::byte* const there = room(bytes.size());
    space.write(there, bytes.data(), bytes.size());
    tensors.push_back(
        {.name = name, .dtype = view.dtype, .shape = view.shape, .data = there, .space = &space});
  }
  return tensors;
}

class WeightsOnGpu : public TransferGpu {
 protected:
  void SetUp() override {
    TransferGpu::SetUp();
    if (!IsSkipped() && !why_no_compiler().empty())
      GTEST_SKIP() << "nothing compiles the kernels that pack: " << why_no_compiler();
  }
};

TEST_F(WeightsOnGpu, AreThoseOfTheHost) {
  for (const char* name : {"llama-bias", "gpt2-tiny", "mixtral-bf16", "gemma-bf16"}) {
    const std::string folder = load_golden(name).folder;
    const std::shared_ptr<const TensorModel> model = open_model(folder);
    EngineOptions options{.executor = "threads"};
    const Planner planner = make_planner(model, options);
    const ModelGraph graph = planner.graph(1, 1);
    WeightStore near(*model, graph, 2, nullptr, {}), far(*model, graph, 2, &space(), {});
    EXPECT_EQ(content(graph, far, &space()), content(graph, near, nullptr)) << name;
    // New weights, which lie in the GPU's memory: every third of them, and then all.
    const std::vector<CallerTensor> all =
        changed(folder, space(), [this](size_t bytes) { return room(bytes); });
    std::vector<CallerTensor> some;
    for (size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
    for (const auto& part : {some, all}) {
      const auto values = model->replacing(std::make_shared<CallerTensors>(part, "update"));
      const auto before = content(graph, near, nullptr);
      near.update(graph, *values, 2, [] {});
      far.update(graph, *values, 2, [] {});
      EXPECT_EQ(content(graph, far, &space()), content(graph, near, nullptr)) << name;
      EXPECT_NE(content(graph, near, nullptr), before) << name;
    }
  }
}

TEST_F(WeightsOnGpu, ThatAreNotFiniteAreRefusedWithTheirPlace) {
  const std::string folder = load_golden("llama2-tiny").folder;
  const std::shared_ptr<const TensorModel> model = open_model(folder);
  EngineOptions options{.executor = "threads"};
  const ModelGraph graph = make_planner(model, options).graph(1, 1);
  WeightStore store(*model, graph, 2, &space(), {});
  const auto before = content(graph, store, &space());
  const std::vector<CallerTensor> tensors =
      changed(folder, space(), [this](size_t bytes) { return room(bytes); });
  for (const CallerTensor& tensor : tensors) {
    if (tensor.name != "model.layers.1.self_attn.k_proj.weight") continue;
    const float infinity = std::numeric_limits<float>::infinity();
    space().write(const_cast<std::byte*>(tensor.data) + 4 * (3 * tensor.shape[1] + 5), &infinity, 4);
  }
  const auto values = model->replacing(std::make_shared<CallerTensors>(tensors, "update"));
  bool changes = false;
  try {
    store.update(graph, *values, 2, [&] { changes = true; });
    ADD_FAILURE() << "was not refused";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[model.layers.1.self_attn.k_proj.weight] element (3, 5) is inf; weights must be finite");
  }
  EXPECT_FALSE(changes);
  EXPECT_EQ(content(graph, store, &space()), before);
}

}  // namespace
}  // namespace heddle::cuda
