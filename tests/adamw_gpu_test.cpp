// A step of AdamW over a list of tensors on a GPU has the bits of the host's pass, and writes nothing else.
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "heddle/backend/cpu/adamw.h"
#include "heddle/backend/cuda/executors/adamw_list.h"
#include "heddle/backend/cuda/executors/gpu_test.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/dynamic_code.h"
#include "heddle/base/float16.h"

namespace heddle::cuda {
namespace {

constexpr i64 kGuard = 64;  // bytes after an array that nobody may write to

i64 state_bytes(AdamwState state) {
  return state == AdamwState::kF32 ? 4 : state == AdamwState::kBf16 ? 2 : 1;
}

// The arrays of a list of tensors, one after another in a run of bytes.
struct Arrays {
  AdamwStep step;
  std::vector<u8> bytes;
  std::vector<AdamwRow> rows;  // addresses are places in `bytes`
  std::mt19937 random{1};
  i64 chunks = 0;

  explicit Arrays(const AdamwStep& kind) : step(kind) {}

  // `shift`: elements by which all arrays but the scales are off a word's bounds.
  void add(i64 count, i64 shift, i64 first) {
    AdamwTensor row{};
    const i64 blocks = (count + kAdamwBlock - 1) / kAdamwBlock, state = state_bytes(step.state);
    row.param = floats(step.param, count, shift, false), row.grad = floats(step.grad, count, shift, false);
    row.residual = array(2 * count, 2 * shift);
    for (i64 i = 0; i < 2 * count; ++i) bytes[size_t(place(row.residual) + i)] = u8(random());
    for (u8** mean : {&row.m, &row.v}) {
      const bool is_square = mean == &row.v;
      if (state == 1) {
        *mean = array(count, shift);
        for (i64 i = 0; i < count; ++i) bytes[size_t(place(*mean) + i)] = u8(random());
      } else {
        *mean = floats(state == 4 ? DType::kF32 : DType::kBf16, count, shift, is_square);
      }
    }
    row.m_scale = reinterpret_cast<float*>(floats(DType::kF32, blocks, 0, true));
    row.v_scale = reinterpret_cast<float*>(floats(DType::kF32, blocks, 0, true));
    row.first = first, row.count = count, row.seed = u32(random());
    rows.push_back({row, chunks});
    chunks += (blocks + kAdamwChunk - 1) / kAdamwChunk;
  }
  // Makes the first gradient of a tensor no number.
  void put_nan(size_t row) {
    const u32 bits = step.grad == DType::kF32 ? 0x7fc00000u : 0x7fc0u;
    std::memcpy(&bytes[size_t(place(rows[row].tensor.grad))], &bits, size_t(size_of(step.grad)));
  }
  // The rows of arrays that begin at `base`.
  std::vector<AdamwRow> at(std::byte* base) const {
    std::vector<AdamwRow> moved = rows;
    const auto move = [&](auto*& each) {
      each = reinterpret_cast<std::remove_reference_t<decltype(each)>>(base + place(each));
    };
    for (auto& [row, chunk] : moved) {
      move(row.param), move(row.residual), move(row.grad), move(row.m), move(row.v);
      move(row.m_scale), move(row.v_scale);
    }
    return moved;
  }

 private:
  static i64 place(const void* address) { return i64(reinterpret_cast<uintptr_t>(address)); }

  u8* array(i64 size, i64 shift) {
    const size_t begin = (bytes.size() + kGuard + 15) / 16 * 16 + size_t(shift);
    bytes.resize(begin + size_t(size) + kGuard, 0xa5);
    return reinterpret_cast<u8*>(begin);
  }
  u8* floats(DType type, i64 count, i64 shift, bool is_square) {
    std::normal_distribution<float> normal;
    const i64 size = size_of(type);
    u8* const made = array(count * size, shift * size);
    for (i64 i = 0; i < count; ++i) {
      const float value = is_square ? std::abs(normal(random)) : normal(random);
      const u32 bits = type == DType::kF32 ? std::bit_cast<u32>(value) : float_to_bf16(value);
      std::memcpy(&bytes[size_t(place(made) + i * size)], &bits, size_t(size));
    }
    return made;
  }
};

class AdamwGpu : public GpuTest, public testing::WithParamInterface<std::tuple<DType, DType, AdamwState>> {};

TEST_P(AdamwGpu, HasTheBitsOfTheHostsPass) {
  const auto [param, grad, state] = GetParam();
  const AdamwStep step{param, grad, state, 1e-2f, 0.9f, 0.999f, 1e-8f, 0.1f, -0.5f, 7};
  Arrays arrays(step);
  arrays.add(kAdamwBlock * kAdamwChunk + 2 * kAdamwBlock + 37, 0, 0);
  arrays.add(5, 0, 3 * kAdamwBlock);
  arrays.add(kAdamwBlock + 16, 1, 0);
  arrays.add(kAdamwBlock, 0, 1000 * kAdamwBlock);

  arrays.put_nan(2);
  std::vector<u8> wanted = arrays.bytes;
  std::vector<AdamwTensor> on_host;
  for (const AdamwRow& row : arrays.at(reinterpret_cast<std::byte*>(wanted.data())))
    on_host.push_back(row.tensor);
  heddle::adamw_step(on_host, step, 1);

  const size_t table = arrays.rows.size() * sizeof(AdamwRow);
  PinnedBuffer memory(arrays.bytes.size(), device()), rows(table, device()), codes(4 * 256 * 4, device());
  std::memcpy(memory.data(), arrays.bytes.data(), arrays.bytes.size());
  std::memcpy(rows.data(), arrays.at(memory.device_data()).data(), table);
  for (size_t of = 0; of < 2; ++of) {
    const DynamicCode& code = DynamicCode::of(of == 0);
    std::memcpy(codes.data() + of * 2048, code.values.data(), 1024);
    std::memcpy(codes.data() + of * 2048 + 1024, code.middles.data(), 1024);
  }
  const Stream stream(device());
  cuda::adamw_step({.rows = reinterpret_cast<const AdamwRow*>(rows.device_data()),
                    .count = i32(arrays.rows.size()),
                    .chunks = arrays.chunks,
                    .codes = reinterpret_cast<const float*>(codes.device_data())},
                   step, 0, stream.handle());
  stream.synchronize();
  size_t other = 0;
  for (size_t i = 0; i < wanted.size(); ++i) other += wanted[i] != memory.as<u8>()[i];
  EXPECT_EQ(other, 0u) << "bytes of " << wanted.size();
  EXPECT_NE(wanted, arrays.bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, AdamwGpu,
    testing::Combine(testing::Values(DType::kF32, DType::kBf16), testing::Values(DType::kF32, DType::kBf16),
                     testing::Values(AdamwState::kF32, AdamwState::kBf16, AdamwState::kDynamic)));

}  // namespace
}  // namespace heddle::cuda
