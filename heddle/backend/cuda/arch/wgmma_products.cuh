// clang-format off
// Written by scripts/make_wgmma.py.
// Asynchronous products of four warps on sm_90a: sums[64, 2 kSums] (+)= a b, of every width. The left operand
// lies on chip or in registers. Until the program has waited for them, it must not touch sums or operands.
#pragma once

#include "heddle/backend/cuda/arch/wgmma.cuh"

namespace heddle::device::arch {

// The elements of both operands, or of the left and the right one. A product takes 32 bytes of k.
enum class Terms : u8 { kBf16, kF16, kTf32, kE4m3, kE5m2, kE4m3E5m2, kE5m2E4m3 };
// The elements of an operand that are adjacent on chip: those of a row or column of the product, or of one k.
enum class Major : u8 { kK, kOuter };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Describes an operand whose rows of kRow bytes (128, 64 or 32) have their 16-byte words permuted by the row,
// eight rows after another (PTX ISA, matrix descriptors). `lead`: for Major::kOuter, bytes from one block of
// rows to the next one.
template <u32 kRow = 128>
inline u64 descriptor(OnChip at, u32 lead = 16) {
  static_assert(kRow == 128 || kRow == 64 || kRow == 32);
  constexpr u64 kSwizzle = kRow == 128 ? 1 : kRow == 64 ? 2 : 3;
  return kSwizzle << 62 | u64(8 * kRow / 16) << 32 | u64(lead / 16) << 16 | u64(at.at % (1u << 18) / 16);
}

// Has the compiler move no use of registers across.
template <i32 kCount>
inline void keep(float (&values)[kCount]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}
template <i32 kCount>
inline void keep(u32 (&values)[kCount]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) asm volatile("" : "+r"(values[i])::"memory");
}

#define HEDDLE_NAMES_8 "%0, %1, %2, %3"
#define HEDDLE_SUMS_8 "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
#define HEDDLE_NAMES_16 HEDDLE_NAMES_8 ", %4, %5, %6, %7"
#define HEDDLE_SUMS_16 HEDDLE_SUMS_8, "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7])
#define HEDDLE_NAMES_24 HEDDLE_NAMES_16 ", %8, %9, %10, %11"
#define HEDDLE_SUMS_24 HEDDLE_SUMS_16, "+f"(sums[8]), "+f"(sums[9]), "+f"(sums[10]), "+f"(sums[11])
#define HEDDLE_NAMES_32 HEDDLE_NAMES_24 ", %12, %13, %14, %15"
#define HEDDLE_SUMS_32 HEDDLE_SUMS_24, "+f"(sums[12]), "+f"(sums[13]), "+f"(sums[14]), "+f"(sums[15])
#define HEDDLE_NAMES_40 HEDDLE_NAMES_32 ", %16, %17, %18, %19"
#define HEDDLE_SUMS_40 HEDDLE_SUMS_32, "+f"(sums[16]), "+f"(sums[17]), "+f"(sums[18]), "+f"(sums[19])
#define HEDDLE_NAMES_48 HEDDLE_NAMES_40 ", %20, %21, %22, %23"
#define HEDDLE_SUMS_48 HEDDLE_SUMS_40, "+f"(sums[20]), "+f"(sums[21]), "+f"(sums[22]), "+f"(sums[23])
#define HEDDLE_NAMES_56 HEDDLE_NAMES_48 ", %24, %25, %26, %27"
#define HEDDLE_SUMS_56 HEDDLE_SUMS_48, "+f"(sums[24]), "+f"(sums[25]), "+f"(sums[26]), "+f"(sums[27])
#define HEDDLE_NAMES_64 HEDDLE_NAMES_56 ", %28, %29, %30, %31"
#define HEDDLE_SUMS_64 HEDDLE_SUMS_56, "+f"(sums[28]), "+f"(sums[29]), "+f"(sums[30]), "+f"(sums[31])
#define HEDDLE_NAMES_72 HEDDLE_NAMES_64 ", %32, %33, %34, %35"
#define HEDDLE_SUMS_72 HEDDLE_SUMS_64, "+f"(sums[32]), "+f"(sums[33]), "+f"(sums[34]), "+f"(sums[35])
#define HEDDLE_NAMES_80 HEDDLE_NAMES_72 ", %36, %37, %38, %39"
#define HEDDLE_SUMS_80 HEDDLE_SUMS_72, "+f"(sums[36]), "+f"(sums[37]), "+f"(sums[38]), "+f"(sums[39])
#define HEDDLE_NAMES_88 HEDDLE_NAMES_80 ", %40, %41, %42, %43"
#define HEDDLE_SUMS_88 HEDDLE_SUMS_80, "+f"(sums[40]), "+f"(sums[41]), "+f"(sums[42]), "+f"(sums[43])
#define HEDDLE_NAMES_96 HEDDLE_NAMES_88 ", %44, %45, %46, %47"
#define HEDDLE_SUMS_96 HEDDLE_SUMS_88, "+f"(sums[44]), "+f"(sums[45]), "+f"(sums[46]), "+f"(sums[47])
#define HEDDLE_NAMES_104 HEDDLE_NAMES_96 ", %48, %49, %50, %51"
#define HEDDLE_SUMS_104 HEDDLE_SUMS_96, "+f"(sums[48]), "+f"(sums[49]), "+f"(sums[50]), "+f"(sums[51])
#define HEDDLE_NAMES_112 HEDDLE_NAMES_104 ", %52, %53, %54, %55"
#define HEDDLE_SUMS_112 HEDDLE_SUMS_104, "+f"(sums[52]), "+f"(sums[53]), "+f"(sums[54]), "+f"(sums[55])
#define HEDDLE_NAMES_120 HEDDLE_NAMES_112 ", %56, %57, %58, %59"
#define HEDDLE_SUMS_120 HEDDLE_SUMS_112, "+f"(sums[56]), "+f"(sums[57]), "+f"(sums[58]), "+f"(sums[59])
#define HEDDLE_NAMES_128 HEDDLE_NAMES_120 ", %60, %61, %62, %63"
#define HEDDLE_SUMS_128 HEDDLE_SUMS_120, "+f"(sums[60]), "+f"(sums[61]), "+f"(sums[62]), "+f"(sums[63])
#define HEDDLE_NAMES_136 HEDDLE_NAMES_128 ", %64, %65, %66, %67"
#define HEDDLE_SUMS_136 HEDDLE_SUMS_128, "+f"(sums[64]), "+f"(sums[65]), "+f"(sums[66]), "+f"(sums[67])
#define HEDDLE_NAMES_144 HEDDLE_NAMES_136 ", %68, %69, %70, %71"
#define HEDDLE_SUMS_144 HEDDLE_SUMS_136, "+f"(sums[68]), "+f"(sums[69]), "+f"(sums[70]), "+f"(sums[71])
#define HEDDLE_NAMES_152 HEDDLE_NAMES_144 ", %72, %73, %74, %75"
#define HEDDLE_SUMS_152 HEDDLE_SUMS_144, "+f"(sums[72]), "+f"(sums[73]), "+f"(sums[74]), "+f"(sums[75])
#define HEDDLE_NAMES_160 HEDDLE_NAMES_152 ", %76, %77, %78, %79"
#define HEDDLE_SUMS_160 HEDDLE_SUMS_152, "+f"(sums[76]), "+f"(sums[77]), "+f"(sums[78]), "+f"(sums[79])
#define HEDDLE_NAMES_168 HEDDLE_NAMES_160 ", %80, %81, %82, %83"
#define HEDDLE_SUMS_168 HEDDLE_SUMS_160, "+f"(sums[80]), "+f"(sums[81]), "+f"(sums[82]), "+f"(sums[83])
#define HEDDLE_NAMES_176 HEDDLE_NAMES_168 ", %84, %85, %86, %87"
#define HEDDLE_SUMS_176 HEDDLE_SUMS_168, "+f"(sums[84]), "+f"(sums[85]), "+f"(sums[86]), "+f"(sums[87])
#define HEDDLE_NAMES_184 HEDDLE_NAMES_176 ", %88, %89, %90, %91"
#define HEDDLE_SUMS_184 HEDDLE_SUMS_176, "+f"(sums[88]), "+f"(sums[89]), "+f"(sums[90]), "+f"(sums[91])
#define HEDDLE_NAMES_192 HEDDLE_NAMES_184 ", %92, %93, %94, %95"
#define HEDDLE_SUMS_192 HEDDLE_SUMS_184, "+f"(sums[92]), "+f"(sums[93]), "+f"(sums[94]), "+f"(sums[95])
#define HEDDLE_NAMES_200 HEDDLE_NAMES_192 ", %96, %97, %98, %99"
#define HEDDLE_SUMS_200 HEDDLE_SUMS_192, "+f"(sums[96]), "+f"(sums[97]), "+f"(sums[98]), "+f"(sums[99])
#define HEDDLE_NAMES_208 HEDDLE_NAMES_200 ", %100, %101, %102, %103"
#define HEDDLE_SUMS_208 HEDDLE_SUMS_200, "+f"(sums[100]), "+f"(sums[101]), "+f"(sums[102]), "+f"(sums[103])
#define HEDDLE_NAMES_216 HEDDLE_NAMES_208 ", %104, %105, %106, %107"
#define HEDDLE_SUMS_216 HEDDLE_SUMS_208, "+f"(sums[104]), "+f"(sums[105]), "+f"(sums[106]), "+f"(sums[107])
#define HEDDLE_NAMES_224 HEDDLE_NAMES_216 ", %108, %109, %110, %111"
#define HEDDLE_SUMS_224 HEDDLE_SUMS_216, "+f"(sums[108]), "+f"(sums[109]), "+f"(sums[110]), "+f"(sums[111])
#define HEDDLE_NAMES_232 HEDDLE_NAMES_224 ", %112, %113, %114, %115"
#define HEDDLE_SUMS_232 HEDDLE_SUMS_224, "+f"(sums[112]), "+f"(sums[113]), "+f"(sums[114]), "+f"(sums[115])
#define HEDDLE_NAMES_240 HEDDLE_NAMES_232 ", %116, %117, %118, %119"
#define HEDDLE_SUMS_240 HEDDLE_SUMS_232, "+f"(sums[116]), "+f"(sums[117]), "+f"(sums[118]), "+f"(sums[119])
#define HEDDLE_NAMES_248 HEDDLE_NAMES_240 ", %120, %121, %122, %123"
#define HEDDLE_SUMS_248 HEDDLE_SUMS_240, "+f"(sums[120]), "+f"(sums[121]), "+f"(sums[122]), "+f"(sums[123])
#define HEDDLE_NAMES_256 HEDDLE_NAMES_248 ", %124, %125, %126, %127"
#define HEDDLE_SUMS_256 HEDDLE_SUMS_248, "+f"(sums[124]), "+f"(sums[125]), "+f"(sums[126]), "+f"(sums[127])
#define HEDDLE_EACH_WIDTH(run)                                                                      \
  if constexpr (kSums * 2 == 8) run(8, "%4", "%5", "%6", "%7", "%8", "%9", "%10");                  \
  if constexpr (kSums * 2 == 16) run(16, "%8", "%9", "%10", "%11", "%12", "%13", "%14");            \
  if constexpr (kSums * 2 == 24) run(24, "%12", "%13", "%14", "%15", "%16", "%17", "%18");          \
  if constexpr (kSums * 2 == 32) run(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22");          \
  if constexpr (kSums * 2 == 40) run(40, "%20", "%21", "%22", "%23", "%24", "%25", "%26");          \
  if constexpr (kSums * 2 == 48) run(48, "%24", "%25", "%26", "%27", "%28", "%29", "%30");          \
  if constexpr (kSums * 2 == 56) run(56, "%28", "%29", "%30", "%31", "%32", "%33", "%34");          \
  if constexpr (kSums * 2 == 64) run(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38");          \
  if constexpr (kSums * 2 == 72) run(72, "%36", "%37", "%38", "%39", "%40", "%41", "%42");          \
  if constexpr (kSums * 2 == 80) run(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46");          \
  if constexpr (kSums * 2 == 88) run(88, "%44", "%45", "%46", "%47", "%48", "%49", "%50");          \
  if constexpr (kSums * 2 == 96) run(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54");          \
  if constexpr (kSums * 2 == 104) run(104, "%52", "%53", "%54", "%55", "%56", "%57", "%58");        \
  if constexpr (kSums * 2 == 112) run(112, "%56", "%57", "%58", "%59", "%60", "%61", "%62");        \
  if constexpr (kSums * 2 == 120) run(120, "%60", "%61", "%62", "%63", "%64", "%65", "%66");        \
  if constexpr (kSums * 2 == 128) run(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70");        \
  if constexpr (kSums * 2 == 136) run(136, "%68", "%69", "%70", "%71", "%72", "%73", "%74");        \
  if constexpr (kSums * 2 == 144) run(144, "%72", "%73", "%74", "%75", "%76", "%77", "%78");        \
  if constexpr (kSums * 2 == 152) run(152, "%76", "%77", "%78", "%79", "%80", "%81", "%82");        \
  if constexpr (kSums * 2 == 160) run(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86");        \
  if constexpr (kSums * 2 == 168) run(168, "%84", "%85", "%86", "%87", "%88", "%89", "%90");        \
  if constexpr (kSums * 2 == 176) run(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94");        \
  if constexpr (kSums * 2 == 184) run(184, "%92", "%93", "%94", "%95", "%96", "%97", "%98");        \
  if constexpr (kSums * 2 == 192) run(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102");     \
  if constexpr (kSums * 2 == 200) run(200, "%100", "%101", "%102", "%103", "%104", "%105", "%106"); \
  if constexpr (kSums * 2 == 208) run(208, "%104", "%105", "%106", "%107", "%108", "%109", "%110"); \
  if constexpr (kSums * 2 == 216) run(216, "%108", "%109", "%110", "%111", "%112", "%113", "%114"); \
  if constexpr (kSums * 2 == 224) run(224, "%112", "%113", "%114", "%115", "%116", "%117", "%118"); \
  if constexpr (kSums * 2 == 232) run(232, "%116", "%117", "%118", "%119", "%120", "%121", "%122"); \
  if constexpr (kSums * 2 == 240) run(240, "%120", "%121", "%122", "%123", "%124", "%125", "%126"); \
  if constexpr (kSums * 2 == 248) run(248, "%124", "%125", "%126", "%127", "%128", "%129", "%130"); \
  if constexpr (kSums * 2 == 256) run(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134");

// Bf16, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.bf16.bf16 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1, " p3 ", " p4 ";}" \
               : HEDDLE_SUMS_##width                                                                                                                  \
               : "l"(a), "l"(b), "r"(i32(add)), "n"(i32(kLeft)), "n"(i32(kRight))                                                                     \
               : "memory")
template <Major kLeft, Major kRight, i32 kSums>
inline void multiply_bf16(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// Bf16, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                                   \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                          \
               "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.bf16.bf16 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1, " p6 ";}" \
               : HEDDLE_SUMS_##width                                                                                                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add)), "n"(i32(kRight))                                                                    \
               : "memory")
template <Major kRight, i32 kSums>
inline void multiply_bf16(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// F16, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                               \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                                      \
               "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.f16.f16 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1, " p3 ", " p4 ";}" \
               : HEDDLE_SUMS_##width                                                                                                                \
               : "l"(a), "l"(b), "r"(i32(add)), "n"(i32(kLeft)), "n"(i32(kRight))                                                                   \
               : "memory")
template <Major kLeft, Major kRight, i32 kSums>
inline void multiply_f16(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// F16, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32.f16.f16 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1, " p6 ";}" \
               : HEDDLE_SUMS_##width                                                                                                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add)), "n"(i32(kRight))                                                                  \
               : "memory")
template <Major kRight, i32 kSums>
inline void multiply_f16(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// Tf32, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                       \
               "wgmma.mma_async.sync.aligned.m64n" #width "k8.f32.tf32.tf32 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                 \
               : "l"(a), "l"(b), "r"(i32(add))                                                                                       \
               : "memory")
template <i32 kSums>
inline void multiply_tf32(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// Tf32, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                          \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                 \
               "wgmma.mma_async.sync.aligned.m64n" #width "k8.f32.tf32.tf32 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add))                                                                             \
               : "memory")
template <i32 kSums>
inline void multiply_tf32(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E4m3, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e4m3.e4m3 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                  \
               : "l"(a), "l"(b), "r"(i32(add))                                                                                        \
               : "memory")
template <i32 kSums>
inline void multiply_e4m3(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E4m3, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                           \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e4m3.e4m3 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add))                                                                              \
               : "memory")
template <i32 kSums>
inline void multiply_e4m3(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E5m2, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e5m2.e5m2 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                  \
               : "l"(a), "l"(b), "r"(i32(add))                                                                                        \
               : "memory")
template <i32 kSums>
inline void multiply_e5m2(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E5m2, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                           \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e5m2.e5m2 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add))                                                                              \
               : "memory")
template <i32 kSums>
inline void multiply_e5m2(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E4m3E5m2, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e4m3.e5m2 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                  \
               : "l"(a), "l"(b), "r"(i32(add))                                                                                        \
               : "memory")
template <i32 kSums>
inline void multiply_e4m3e5m2(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E4m3E5m2, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                           \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e4m3.e5m2 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add))                                                                              \
               : "memory")
template <i32 kSums>
inline void multiply_e4m3e5m2(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E5m2E4m3, a on chip.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; "                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e5m2.e4m3 {" HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                  \
               : "l"(a), "l"(b), "r"(i32(add))                                                                                        \
               : "memory")
template <i32 kSums>
inline void multiply_e5m2e4m3(float (&sums)[kSums], u64 a, u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

// E5m2E4m3, a in registers.
#define HEDDLE_RUN(width, p0, p1, p2, p3, p4, p5, p6)                                                                                                           \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; "                                                                                                  \
               "wgmma.mma_async.sync.aligned.m64n" #width "k32.f32.e5m2.e4m3 {" HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}" \
               : HEDDLE_SUMS_##width                                                                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add))                                                                              \
               : "memory")
template <i32 kSums>
inline void multiply_e5m2e4m3(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  HEDDLE_EACH_WIDTH(HEDDLE_RUN)
}
#undef HEDDLE_RUN

#undef HEDDLE_EACH_WIDTH
#undef HEDDLE_NAMES_8
#undef HEDDLE_SUMS_8
#undef HEDDLE_NAMES_16
#undef HEDDLE_SUMS_16
#undef HEDDLE_NAMES_24
#undef HEDDLE_SUMS_24
#undef HEDDLE_NAMES_32
#undef HEDDLE_SUMS_32
#undef HEDDLE_NAMES_40
#undef HEDDLE_SUMS_40
#undef HEDDLE_NAMES_48
#undef HEDDLE_SUMS_48
#undef HEDDLE_NAMES_56
#undef HEDDLE_SUMS_56
#undef HEDDLE_NAMES_64
#undef HEDDLE_SUMS_64
#undef HEDDLE_NAMES_72
#undef HEDDLE_SUMS_72
#undef HEDDLE_NAMES_80
#undef HEDDLE_SUMS_80
#undef HEDDLE_NAMES_88
#undef HEDDLE_SUMS_88
#undef HEDDLE_NAMES_96
#undef HEDDLE_SUMS_96
#undef HEDDLE_NAMES_104
#undef HEDDLE_SUMS_104
#undef HEDDLE_NAMES_112
#undef HEDDLE_SUMS_112
#undef HEDDLE_NAMES_120
#undef HEDDLE_SUMS_120
#undef HEDDLE_NAMES_128
#undef HEDDLE_SUMS_128
#undef HEDDLE_NAMES_136
#undef HEDDLE_SUMS_136
#undef HEDDLE_NAMES_144
#undef HEDDLE_SUMS_144
#undef HEDDLE_NAMES_152
#undef HEDDLE_SUMS_152
#undef HEDDLE_NAMES_160
#undef HEDDLE_SUMS_160
#undef HEDDLE_NAMES_168
#undef HEDDLE_SUMS_168
#undef HEDDLE_NAMES_176
#undef HEDDLE_SUMS_176
#undef HEDDLE_NAMES_184
#undef HEDDLE_SUMS_184
#undef HEDDLE_NAMES_192
#undef HEDDLE_SUMS_192
#undef HEDDLE_NAMES_200
#undef HEDDLE_SUMS_200
#undef HEDDLE_NAMES_208
#undef HEDDLE_SUMS_208
#undef HEDDLE_NAMES_216
#undef HEDDLE_SUMS_216
#undef HEDDLE_NAMES_224
#undef HEDDLE_SUMS_224
#undef HEDDLE_NAMES_232
#undef HEDDLE_SUMS_232
#undef HEDDLE_NAMES_240
#undef HEDDLE_SUMS_240
#undef HEDDLE_NAMES_248
#undef HEDDLE_SUMS_248
#undef HEDDLE_NAMES_256
#undef HEDDLE_SUMS_256

// sums = a b, or sums += a b where `add`. The left operand: a descriptor, or a fragment of mma.
template <Terms kTerms, Major kLeft, Major kRight, i32 kSums>
inline void multiply(float (&sums)[kSums], u64 a, u64 b, bool add) {
  static_assert(kTerms == Terms::kBf16 || kTerms == Terms::kF16 || (kLeft == Major::kK && kRight == Major::kK),
                "these are along k alone");
  if constexpr (kTerms == Terms::kBf16) return multiply_bf16<kLeft, kRight>(sums, a, b, add);
  if constexpr (kTerms == Terms::kF16) return multiply_f16<kLeft, kRight>(sums, a, b, add);
  if constexpr (kTerms == Terms::kTf32) return multiply_tf32(sums, a, b, add);
  if constexpr (kTerms == Terms::kE4m3) return multiply_e4m3(sums, a, b, add);
  if constexpr (kTerms == Terms::kE5m2) return multiply_e5m2(sums, a, b, add);
  if constexpr (kTerms == Terms::kE4m3E5m2) return multiply_e4m3e5m2(sums, a, b, add);
  if constexpr (kTerms == Terms::kE5m2E4m3) return multiply_e5m2e4m3(sums, a, b, add);
}
template <Terms kTerms, Major kRight, i32 kSums>
inline void multiply(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  static_assert(kTerms == Terms::kBf16 || kTerms == Terms::kF16 || (kRight == Major::kK),
                "these are along k alone");
  if constexpr (kTerms == Terms::kBf16) return multiply_bf16<kRight>(sums, a, b, add);
  if constexpr (kTerms == Terms::kF16) return multiply_f16<kRight>(sums, a, b, add);
  if constexpr (kTerms == Terms::kTf32) return multiply_tf32(sums, a, b, add);
  if constexpr (kTerms == Terms::kE4m3) return multiply_e4m3(sums, a, b, add);
  if constexpr (kTerms == Terms::kE5m2) return multiply_e5m2(sums, a, b, add);
  if constexpr (kTerms == Terms::kE4m3E5m2) return multiply_e4m3e5m2(sums, a, b, add);
  if constexpr (kTerms == Terms::kE5m2E4m3) return multiply_e5m2e4m3(sums, a, b, add);
}
constexpr bool kHasProducts = true;
#else
constexpr bool kHasProducts = false;  // the others are for code that is never made
template <u32 kRow = 128>
inline u64 descriptor(OnChip, u32 = 16) {
  return 0;
}
template <class Values>
inline void keep(Values&) {}
template <Terms, Major, Major, i32 kSums>
inline void multiply(float (&)[kSums], u64, u64, bool) {}
template <Terms, Major, i32 kSums>
inline void multiply(float (&)[kSums], const u32 (&)[4], u64, bool) {}
#endif

}  // namespace heddle::device::arch
// clang-format on
