// Shared memory of a kernel that has no other than what its launch gives it.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device {

// The dynamic shared memory of the launch, from a multiple of 1,024 bytes on.
inline arch::OnChip chip() {
  extern __shared__ __align__(1024) u8 whole_kernel_chip[];
  return arch::on_chip(whole_kernel_chip);
}

// A value in shared memory. It is read anew wherever it is needed, so that it takes no registers in between.
template <class T>
struct Shared {
  struct Words {
    u32 at[sizeof(T) / 4];
  };
  arch::OnChip place;

  void store(const T& value) const {
    const Words words = __builtin_bit_cast(Words, value);
#pragma unroll
    for (u32 i = 0; i < sizeof(T) / 4; ++i) arch::store_shared(place + 4 * i, words.at[i]);
  }
  T load() const {
    Words words;
#pragma unroll
    for (u32 i = 0; i < sizeof(T) / 4; ++i) words.at[i] = arch::load_shared(place + 4 * i);
    return __builtin_bit_cast(T, words);
  }
};

}  // namespace heddle::device
