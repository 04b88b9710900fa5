// A transposition of elements of 16 bits in tiles on chip, with words of 16 bytes on both sides. ldmatrix turns blocks of 8 x 8, then
// four lanes exchange words so that each has 16 neighbouring bytes of y.
namespace transpose {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kRows = 64, kColumns = 64;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kRows = Config::kRows, kColumns = Config::kColumns;
  static constexpr i32 kRowWords = kColumns / 8, kLoads = kRows * kRowWords / i32(kThreads);
  static_assert(kRows % 32 == 0 && kColumns % 64 == 0);

  // Word w of row r; words of a line of 128 bytes are permuted, so that neither side meets a bank twice.
  static constexpr i32 place(i32 r, i32 w) { return r * kColumns * 2 + w / 8 * 128 + ((w % 8 ^ r % 8) * 16); }

  static void run(const Transpose& a, const TensorMap*, u8*) {
    __shared__ __align__(128) u8 tile[kRows * kColumns * 2];
    const i32 rows = a.x.size[0], columns = a.x.size[1], wide = (columns + kColumns - 1) / kColumns;
    const i32 r0 = i32(blockIdx.x) / wide * kRows, c0 = i32(blockIdx.x) % wide * kColumns;
    const i32 t = i32(threadIdx.x);
    uint4 words[kLoads];
#pragma unroll
    for (i32 i = 0; i < kLoads; ++i) {
      const i32 at = t + i32(kThreads) * i, r = r0 + at / kRowWords, c = c0 + at % kRowWords * 8;
      words[i] = {};
      if (r < rows && c < columns) words[i] = arch::load_constant(row_of(a.x, r) + 2 * i64(c));
    }
#pragma unroll
    for (i32 i = 0; i < kLoads; ++i) {
      const i32 at = t + i32(kThreads) * i;
      *reinterpret_cast<uint4*>(tile + place(at / kRowWords, at % kRowWords)) = words[i];
    }
    __syncthreads();
    const i32 lane = t % 32, q = lane % 4;
#pragma unroll
    for (i32 w = t / 32; w < kRowWords; w += i32(kThreads) / 32)  // eight columns of x
#pragma unroll
      for (i32 h = 0; h < kRows; h += 32) {  // 32 rows of x
        const uint4 mine = turned(tile + place(h + lane, w), q);
        const i32 r = r0 + h + q * 8, c = c0 + w * 8 + lane / 4;
        if (r < rows && c < columns) arch::store_once(row_of(a.y, c) + 2 * i64(r), mine);
      }
  }

 private:
  // Returns, of four blocks whose rows the lanes name, eight neighbouring elements of a row of y.
  static uint4 turned(const u8* row, i32 q) {
    u32 v[4], mine[4];
    arch::load_transposed(v, row);
    // A lane has word q of its row in each of four blocks; it shall have all words of block q.
#pragma unroll
    for (i32 step = 0; step < 4; ++step) {
      const i32 other = q ^ step;
      const u32 given = other == 0 ? v[0] : other == 1 ? v[1] : other == 2 ? v[2] : v[3];
      const u32 taken = __shfl_xor_sync(~0u, given, step);
#pragma unroll
      for (i32 i = 0; i < 4; ++i) mine[i] = other == i ? taken : step == 0 ? taken : mine[i];
    }
    return {mine[0], mine[1], mine[2], mine[3]};
  }
};

}  // namespace transpose
