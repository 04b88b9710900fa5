// Rows of floats in registers, for whole kernels that are as fast as memory is (kit/rows/row_kernel.h plans them). A thread has eight
// neighbouring elements at a time, in words of 16 bytes; elements that are read once pass the caches by.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

// Eight neighbouring elements as they lie in memory.
template <DType kType>
struct Eight {
  static constexpr i32 kWords = size_of(kType) / 2;
  uint4 words[kWords] = {};

  // The `at`-th eight elements of a row. Two words of a sector of 32 bytes come by way of the L1 cache, which reads it once.
  void load(const u8* row, i64 at) {
    if constexpr (kWords == 1)
      words[0] = arch::load_constant(place(row, at));
    else
      load_kept(row, at);
  }
  // Loads those of a row that other threads read too.
  void load_kept(const u8* row, i64 at) {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) words[i] = place(row, at)[i];
  }
  // Copies the `at`-th eight elements of a row to shared memory asynchronously, word i to to(i).
  template <class Place>
  static void copy(const u8* row, i64 at, Place&& to) {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i)
      if constexpr (kWords == 1)
        arch::copy_bytes(to(i), place(row, at), 16);
      else
        arch::copy_half_sector(to(i), place(row, at) + i);
  }
  // A row's number of elements matters where they do not fill eights (row_share.cuh).
  void load(const u8* row, i64 at, i32) { load(row, at); }
  void load_kept(const u8* row, i64 at, i32) { load_kept(row, at); }
  void store(u8* row, i64 at, i32) const { store(row, at); }
  static constexpr bool has(i32) { return true; }
  void store(u8* row, i64 at) const {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) arch::store_once(const_cast<uint4*>(place(row, at)) + i, words[i]);
  }
  float get(i32 i) const {
    if constexpr (kType == DType::kF32) return __uint_as_float(part(i));
    if constexpr (kType == DType::kBf16)
      return __uint_as_float(i % 2 == 0 ? part(i / 2) << 16 : part(i / 2) & 0xffff0000u);
    return from_f16(u16(i % 2 == 0 ? part(i / 2) : part(i / 2) >> 16));
  }
  // make(i): the value of element i.
  template <class Make>
  static Eight of(Make&& make) {
    u32 bits[4 * kWords];
#pragma unroll
    for (i32 i = 0; i < 4 * kWords; ++i) {
      if constexpr (kType == DType::kF32)
        bits[i] = u32(__float_as_int(make(i)));
      else
        bits[i] = pack_two(kType, make(2 * i), make(2 * i + 1));
    }
    Eight made;
#pragma unroll
    for (i32 i = 0; i < kWords; ++i)
      made.words[i] = {bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]};
    return made;
  }

 private:
  static const uint4* place(const u8* row, i64 at) {
    return reinterpret_cast<const uint4*>(row) + at * kWords;
  }
  u32 part(i32 i) const {
    const uint4& word = words[i / 4];
    return i % 4 == 0 ? word.x : i % 4 == 1 ? word.y : i % 4 == 2 ? word.z : word.w;
  }
};

inline u8* row_of(const Tensor& tensor, i32 row) {
  return tensor.data + i64(row) * tensor.stride[0] * size_of(tensor.dtype);
}

// The CTA that runs, for code that kernels have in common.
struct ThisCta {
  static i32 thread() { return i32(threadIdx.x); }
  static u32 number() { return blockIdx.x; }
  static void sync() { __syncthreads(); }
  // The value that the lane has whose number differs in `bits`.
  static float of_lane_across(float value, u32 bits) { return __shfl_xor_sync(~0u, value, bits); }
};

// The threads that have a row together: a part of a warp, a warp, all of a CTA, or those of the kCluster CTAs of a cluster. A CTA has
// kThreads / kRowThreads rows, or a part of one.
template <u32 kThreads, u32 kRowThreads, i32 kCluster = 1>
struct RowTeam {
  static_assert(kRowThreads == 8 || kRowThreads == 16 || kRowThreads == 32 || kRowThreads == kThreads);
  static_assert(kCluster == 1 || kRowThreads == kThreads);
  static constexpr u32 kThreadsOfRow = kRowThreads;
  static constexpr i32 kLanes = kRowThreads < 32 ? kRowThreads : 32;
  static constexpr u32 kWarps = (kRowThreads + 31) / 32, kAll = kWarps * kCluster;
  static constexpr i32 kMostCount = 4;  // values that a cluster reduces at once
  // Dynamic shared memory that a cluster's team needs, from the beginning on (kit/rows/row_kernel.cpp).
  static constexpr u32 kRoomBytes = kCluster == 1 ? 0 : 128 + 2 * kMostCount * kAll * 4;

  static i32 thread() { return i32(threadIdx.x % kRowThreads); }
  static i32 number() { return i32(threadIdx.x / kRowThreads); }  // among the teams of the CTA
  static i32 row() { return i32(blockIdx.x / kCluster * (kThreads / kRowThreads)) + number(); }
  // How many elements, or eights, the team's row has: none past the last row, where other teams of the warp may have one.
  static i32 elements(const Tensor& matrix) { return row() < matrix.size[0] ? matrix.size[1] : 0; }
  static i32 eights(const Tensor& matrix) { return elements(matrix) / 8; }
  // The kRows rows that a team has, and their elements.
  template <i32 kRows>
  struct Rows {
    i32 row[kRows], elements[kRows];

    explicit Rows(const Tensor& matrix) {
      constexpr u32 kTeams = kThreads / kRowThreads;
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) {
        row[r] = i32(blockIdx.x / kCluster * (kTeams * kRows) + u32(r) * kTeams) + number();
        elements[r] = row[r] < matrix.size[0] ? matrix.size[1] : 0;
      }
    }
  };
  // Makes a team of a cluster ready for reduce(): all of its CTAs run, and their barriers count.
  static void meet() {
    if constexpr (kCluster > 1) {
      if (threadIdx.x == 0) {
        for (u32 turn = 0; turn < 2; ++turn) arch::init_counted(arrived(turn));
        arch::fence_barriers();
      }
      arch::sync_cluster();
    }
  }

  template <class Op>
  static float over_warp(Op op, float mine) {
#pragma unroll
    for (i32 bits = kLanes / 2; bits > 0; bits /= 2)
      mine = combine(op, mine, __shfl_xor_sync(~0u, mine, bits));
    return mine;
  }
  // Reduces kCount values of all threads at once. Calls that follow each other take turns, in a cluster from 0 on.
  template <i32 kCount, class Op>
  static void reduce(Op op, float (&mine)[kCount], u32 turn = 0) {
#pragma unroll
    for (float& value : mine) value = over_warp(op, value);
    if constexpr (kWarps > 1) {
      const float* const values = share(mine, turn);
      const u32 lane = threadIdx.x % 32;
#pragma unroll
      for (i32 i = 0; i < kCount; ++i) {
        mine[i] = lane < kAll ? values[i * i32(kAll) + i32(lane)] : identity(op);
#pragma unroll
        for (u32 at = 32; at < kAll; at += 32)
          if (at + lane < kAll) mine[i] = combine(op, mine[i], values[i * i32(kAll) + i32(at + lane)]);
        mine[i] = over_warp(op, mine[i]);
      }
    }
  }
  template <class Op>
  static float reduce(Op op, float mine, u32 turn = 0) {
    float one[1] = {mine};
    reduce(op, one, turn);
    return one[0];
  }
  // f(n, at) for the eights of a row that the thread has: word n of it is number `at` of the row.
  template <i32 kWords, class F>
  static void each(i32 eights, F&& f) {
    i32 first = 0, end = eights;
    if constexpr (kCluster > 1) {
      const i32 part = (eights + kCluster - 1) / kCluster;
      first = i32(arch::cta_in_cluster()) * part;
      end = first + part < eights ? first + part : eights;
    }
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i32 at = first + thread() + n * i32(kRowThreads); at < end) f(n, at);
  }

 private:
  // Counts the bytes that a turn's stores bring. A warp stores its next values after it has read those of all, so that two turns are
  // enough.
  static arch::OnChip arrived(u32 turn) {
    return arch::on_chip(reinterpret_cast<u64*>(arch::dynamic_shared()) + turn % 2);
  }
  // Returns the values of all warps, [kCount][kAll], which each warp has of its own lanes. In a cluster each CTA gets them.
  template <i32 kCount>
  static const float* share(const float (&mine)[kCount], u32 turn) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (kCluster == 1) {
      __shared__ float room[2][kCount][kWarps];
#pragma unroll
      for (i32 i = 0; i < kCount; ++i)
        if (lane == 0) room[turn % 2][i][warp] = mine[i];
      __syncthreads();
      return room[turn % 2][0];
    } else {
      static_assert(kCount <= kMostCount);
      float* const room =
          reinterpret_cast<float*>(arch::dynamic_shared() + 128) + turn % 2 * u32(kMostCount) * kAll;
      if (lane < u32(kCluster))
#pragma unroll
        for (i32 i = 0; i < kCount; ++i) {
          const float* const place = room + u32(i) * kAll + arch::cta_in_cluster() * kWarps + warp;
          arch::store_counted(arch::at_cta(arch::on_chip(place), lane), __float_as_uint(mine[i]),
                              arch::at_cta(arrived(turn), lane));
        }
      arch::wait_counted(arrived(turn), kCount * kAll * 4, turn / 2 % 2);
      return room;
    }
  }
};

// A tensor of elements of this type.
template <DType kType>
struct Typed {
  const Tensor& tensor;
};

// The place of a CTA in matrices [rows, columns] whose elements are worked on one by one.
struct Stretch {
  i32 row;
  i64 begin, end;  // eights of the row

  // Cuts all rows as one, where they lie end to end (kit/rows/row_kernel.cpp says so). A thread with few elements would take long to find out.
  static Stretch of_all(i64 each, const Tensor& tensor) {
    const i64 eights = i64(tensor.size[0]) * tensor.size[1] / 8, begin = i64(blockIdx.x) * each;
    return {0, begin, begin + each < eights ? begin + each : eights};
  }
  template <bool kFlat>
  static Stretch of_cta(i64 each, const Tensor& tensor) {
    if constexpr (kFlat)
      return of_all(each, tensor);
    else
      return of_row(each, tensor);
  }
  // Cuts rows one by one.
  static Stretch of_row(i64 each, const Tensor& tensor) {
    const i64 eights = tensor.size[1] / 8;
    const u32 pieces = u32((eights + each - 1) / each);
    const i64 begin = i64(blockIdx.x % pieces) * each;
    return {i32(blockIdx.x / pieces), begin, begin + each < eights ? begin + each : eights};
  }
  i32 elements() const { return 8 * i32(end - begin); }
  template <DType kType>
  u8* place(const Typed<kType>& matrix) const {
    return matrix.tensor.data + (i64(row) * matrix.tensor.stride[0] + 8 * begin) * size_of(kType);
  }
  // use(at, load(at)) for the stretch: all loads, then between(), then the uses.
  template <u32 kThreads, i32 kWords, class Load, class Between, class Use>
  void walk(Load&& load, Between&& between, Use&& use) const {
    decltype(load(begin)) values[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i64 at = begin + threadIdx.x + n * i64(kThreads); at < end) values[n] = load(at);
    between();
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i64 at = begin + threadIdx.x + n * i64(kThreads); at < end) use(at, values[n]);
  }
  template <u32 kThreads, i32 kWords, class Load, class Use>
  void walk(Load&& load, Use&& use) const {
    walk<kThreads, kWords>(
        load, [] {}, use);
  }
};

constexpr float kLog2E = 1.44269504088896341f;

// A running maximum, and the sum of 2^(log2 e * (value - maximum)).
struct Softsum {
  float top = -1e38f, sum = 0;  // lower values weigh nothing

  // Adds the values get(i), i < kCount, whose maximum `most` is.
  template <i32 kCount, class Get>
  void add(float most, Get&& get) {
    const float next = fmaxf(top, most);
    sum *= arch::exp2((top - next) * kLog2E);
    top = next;
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) sum += arch::exp2((get(i) - next) * kLog2E);
  }
  // Joins those of a team.
  template <class Team>
  void join() {
    const float all = Team::reduce(Max(), top);
    sum = Team::reduce(Sum(), sum * arch::exp2((top - all) * kLog2E), 1);
    top = all;
  }
  // Joins those of the CTAs that have a row together.
  template <class Part>
  void join_cluster(const Part& part) {
    const float mine[2] = {top, sum};
    float others[2] = {-1e38f, 0};
    part.exchange(mine, others);
    top = Part::Team::over_warp(Max(), others[0]);
    sum = Part::Team::over_warp(Sum(), others[1] * arch::exp2((others[0] - top) * kLog2E));
  }
};

// The part of a row that one of kCluster CTAs has, in eights. It keeps them in its shared memory, each of the thread that copied it,
// so that copies need no barrier. kKept: it keeps so many at most, and the rest is read again; 0: it keeps all.
template <u32 kThreads, i32 kCluster, i32 kKept = 0>
struct ClusterPart {
  using Team = RowTeam<kThreads, kThreads>;
  static constexpr i32 kSteps = 4;  // in which a part comes

  explicit ClusterPart(i32 eights) {
    const i32 part = (eights + kCluster - 1) / kCluster;
    begin_ = kCluster > 1 ? i32(arch::cta_in_cluster()) * part : 0;
    const i32 left = eights - begin_;
    count_ = left < 0 ? 0 : left < part ? left : part;
    room_ = kKept == 0 || part < kKept ? part : kKept;
    kept_ = count_ < room_ ? count_ : room_;
  }
  static i32 row() { return i32(blockIdx.x / kCluster); }

  // Eights of one matrix, from word kFirst of each on.
  template <DType kType, i32 kFirst = 0>
  struct Kept {
    uint4* words;
    i32 room;

    Eight<kType> get(i32 i) const {
      Eight<kType> value;
#pragma unroll
      for (i32 n = 0; n < Eight<kType>::kWords; ++n) value.words[n] = words[i64(kFirst + n) * room + i];
      return value;
    }
    void copy(const u8* row, i32 i, i32 at) const {
      Eight<kType>::copy(row, at, [&](i32 n) { return words + i64(kFirst + n) * room + i; });
    }
  };
  template <DType kType, i32 kFirst = 0>
  Kept<kType, kFirst> kept() const {
    return {reinterpret_cast<uint4*>(arch::dynamic_shared() + kExchangeBytes), room_};
  }

  // copy(i, at) for each of the thread's eights that are kept, number i of the part and `at` of the row; then use(i) as they come.
  template <class Copy, class Use>
  void bring(Copy&& copy, Use&& use) const {
#pragma unroll 1
    for (i32 step = 0; step < kSteps; ++step) {
      each(step, [&](i32 i) { copy(i, begin_ + i); });
      arch::commit_copies();
    }
#pragma unroll
    for (i32 step = 0; step < kSteps; ++step) {
      arch::wait_copies(kSteps - 1 - step);
      each(step, use);
    }
  }
  // use(load(at), at) for each of the thread's eights that are not kept.
  template <class Load, class Use>
  void each_other(Load&& load, Use&& use) const {
    if constexpr (kKept > 0) {
      constexpr i32 kBatch = 4;  // under way at once
#pragma unroll 1
      for (i32 i = kept_ + i32(threadIdx.x); i < count_; i += kBatch * i32(kThreads)) {
        decltype(load(i)) values[kBatch];
#pragma unroll
        for (i32 n = 0; n < kBatch; ++n)
          if (const i32 own = i + n * i32(kThreads); own < count_) values[n] = load(begin_ + own);
#pragma unroll
        for (i32 n = 0; n < kBatch; ++n)
          if (const i32 own = i + n * i32(kThreads); own < count_) use(values[n], begin_ + own);
      }
    }
  }
  // use(i, at) for each of those that are.
  template <class Use>
  void each(Use&& use) const {
#pragma unroll 2
    for (i32 i = i32(threadIdx.x); i < kept_; i += i32(kThreads)) use(i, begin_ + i);
  }

  // others[n] becomes mine[n] of CTA number `lane`; lanes past the last keep theirs. Once; no CTA ends before leave(), which waits until
  // all have read.
  template <i32 kCount>
  void exchange(const float (&mine)[kCount], float (&others)[kCount]) const {
    static_assert(kCount * 4 <= kExchangeBytes);
    float* const place = reinterpret_cast<float*>(arch::dynamic_shared());
    if constexpr (kCluster > 1) {
      if (threadIdx.x == 0)
        for (i32 n = 0; n < kCount; ++n) place[n] = mine[n];
      arch::sync_cluster();
    }
    if (const u32 lane = threadIdx.x % 32; lane < kCluster)
      for (i32 n = 0; n < kCount; ++n)
        others[n] =
            kCluster > 1 ? arch::load_float_at(arch::at_cta(arch::on_chip(place + n), lane)) : mine[n];
    if constexpr (kCluster > 1) arch::arrive_at_cluster();
  }
  void leave() const {
    if constexpr (kCluster > 1) arch::wait_for_cluster();
  }

 private:
  static constexpr i32 kExchangeBytes = 128;

  template <class Use>
  void each(i32 step, Use&& use) const {
    const i32 rounds = (kept_ + i32(kThreads) - 1) / i32(kThreads);
    const i32 first = rounds * step / kSteps, last = rounds * (step + 1) / kSteps;
#pragma unroll 2
    for (i32 round = first; round < last; ++round)
      if (const i32 i = i32(threadIdx.x) + round * i32(kThreads); i < kept_) use(i);
  }

  i32 room_, begin_, count_, kept_;  // eights
};

}  // namespace heddle::device
