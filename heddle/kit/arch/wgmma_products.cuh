// Asynchronous products of four warps on sm_90a: sums[64, 2 kSums] (+)= a b, of every width. The left operand
// lies on chip or in registers. Until the program has waited for them, it must not touch sums or operands.
#pragma once

#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/tile/mma_plan.h"

namespace heddle::device::arch {

// The elements of both operands, or of the left and the right one. A product takes 32 bytes of k.
enum class Terms : u8 { kBf16, kF16, kTf32, kE4m3, kE5m2, kE4m3E5m2, kE5m2E4m3 };
using tile::Major;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// Describes an operand that begins there and lies as its tile says (PTX ISA, matrix descriptors).
template <tile::OperandTile kTile>
inline u64 descriptor(OnChip at) {
  return tile::descriptor(kTile).bits() | u64(at.at % (1u << 18) / 16);
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

// An instruction has as many operands as sums: HEDDLE_SUMS_N are those of N columns, HEDDLE_NAMES_N their places in its text.
// The places of the operands that follow come with the width.
// clang-format off
#define HEDDLE_FOUR_SUMS(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define HEDDLE_SUMS_8 HEDDLE_FOUR_SUMS(0)
#define HEDDLE_SUMS_16 HEDDLE_SUMS_8, HEDDLE_FOUR_SUMS(4)
#define HEDDLE_SUMS_24 HEDDLE_SUMS_16, HEDDLE_FOUR_SUMS(8)
#define HEDDLE_SUMS_32 HEDDLE_SUMS_24, HEDDLE_FOUR_SUMS(12)
#define HEDDLE_SUMS_40 HEDDLE_SUMS_32, HEDDLE_FOUR_SUMS(16)
#define HEDDLE_SUMS_48 HEDDLE_SUMS_40, HEDDLE_FOUR_SUMS(20)
#define HEDDLE_SUMS_56 HEDDLE_SUMS_48, HEDDLE_FOUR_SUMS(24)
#define HEDDLE_SUMS_64 HEDDLE_SUMS_56, HEDDLE_FOUR_SUMS(28)
#define HEDDLE_SUMS_72 HEDDLE_SUMS_64, HEDDLE_FOUR_SUMS(32)
#define HEDDLE_SUMS_80 HEDDLE_SUMS_72, HEDDLE_FOUR_SUMS(36)
#define HEDDLE_SUMS_88 HEDDLE_SUMS_80, HEDDLE_FOUR_SUMS(40)
#define HEDDLE_SUMS_96 HEDDLE_SUMS_88, HEDDLE_FOUR_SUMS(44)
#define HEDDLE_SUMS_104 HEDDLE_SUMS_96, HEDDLE_FOUR_SUMS(48)
#define HEDDLE_SUMS_112 HEDDLE_SUMS_104, HEDDLE_FOUR_SUMS(52)
#define HEDDLE_SUMS_120 HEDDLE_SUMS_112, HEDDLE_FOUR_SUMS(56)
#define HEDDLE_SUMS_128 HEDDLE_SUMS_120, HEDDLE_FOUR_SUMS(60)
#define HEDDLE_SUMS_136 HEDDLE_SUMS_128, HEDDLE_FOUR_SUMS(64)
#define HEDDLE_SUMS_144 HEDDLE_SUMS_136, HEDDLE_FOUR_SUMS(68)
#define HEDDLE_SUMS_152 HEDDLE_SUMS_144, HEDDLE_FOUR_SUMS(72)
#define HEDDLE_SUMS_160 HEDDLE_SUMS_152, HEDDLE_FOUR_SUMS(76)
#define HEDDLE_SUMS_168 HEDDLE_SUMS_160, HEDDLE_FOUR_SUMS(80)
#define HEDDLE_SUMS_176 HEDDLE_SUMS_168, HEDDLE_FOUR_SUMS(84)
#define HEDDLE_SUMS_184 HEDDLE_SUMS_176, HEDDLE_FOUR_SUMS(88)
#define HEDDLE_SUMS_192 HEDDLE_SUMS_184, HEDDLE_FOUR_SUMS(92)
#define HEDDLE_SUMS_200 HEDDLE_SUMS_192, HEDDLE_FOUR_SUMS(96)
#define HEDDLE_SUMS_208 HEDDLE_SUMS_200, HEDDLE_FOUR_SUMS(100)
#define HEDDLE_SUMS_216 HEDDLE_SUMS_208, HEDDLE_FOUR_SUMS(104)
#define HEDDLE_SUMS_224 HEDDLE_SUMS_216, HEDDLE_FOUR_SUMS(108)
#define HEDDLE_SUMS_232 HEDDLE_SUMS_224, HEDDLE_FOUR_SUMS(112)
#define HEDDLE_SUMS_240 HEDDLE_SUMS_232, HEDDLE_FOUR_SUMS(116)
#define HEDDLE_SUMS_248 HEDDLE_SUMS_240, HEDDLE_FOUR_SUMS(120)
#define HEDDLE_SUMS_256 HEDDLE_SUMS_248, HEDDLE_FOUR_SUMS(124)
#define HEDDLE_NAMES_8 "%0, %1, %2, %3"
#define HEDDLE_NAMES_16 HEDDLE_NAMES_8 ", %4, %5, %6, %7"
#define HEDDLE_NAMES_24 HEDDLE_NAMES_16 ", %8, %9, %10, %11"
#define HEDDLE_NAMES_32 HEDDLE_NAMES_24 ", %12, %13, %14, %15"
#define HEDDLE_NAMES_40 HEDDLE_NAMES_32 ", %16, %17, %18, %19"
#define HEDDLE_NAMES_48 HEDDLE_NAMES_40 ", %20, %21, %22, %23"
#define HEDDLE_NAMES_56 HEDDLE_NAMES_48 ", %24, %25, %26, %27"
#define HEDDLE_NAMES_64 HEDDLE_NAMES_56 ", %28, %29, %30, %31"
#define HEDDLE_NAMES_72 HEDDLE_NAMES_64 ", %32, %33, %34, %35"
#define HEDDLE_NAMES_80 HEDDLE_NAMES_72 ", %36, %37, %38, %39"
#define HEDDLE_NAMES_88 HEDDLE_NAMES_80 ", %40, %41, %42, %43"
#define HEDDLE_NAMES_96 HEDDLE_NAMES_88 ", %44, %45, %46, %47"
#define HEDDLE_NAMES_104 HEDDLE_NAMES_96 ", %48, %49, %50, %51"
#define HEDDLE_NAMES_112 HEDDLE_NAMES_104 ", %52, %53, %54, %55"
#define HEDDLE_NAMES_120 HEDDLE_NAMES_112 ", %56, %57, %58, %59"
#define HEDDLE_NAMES_128 HEDDLE_NAMES_120 ", %60, %61, %62, %63"
#define HEDDLE_NAMES_136 HEDDLE_NAMES_128 ", %64, %65, %66, %67"
#define HEDDLE_NAMES_144 HEDDLE_NAMES_136 ", %68, %69, %70, %71"
#define HEDDLE_NAMES_152 HEDDLE_NAMES_144 ", %72, %73, %74, %75"
#define HEDDLE_NAMES_160 HEDDLE_NAMES_152 ", %76, %77, %78, %79"
#define HEDDLE_NAMES_168 HEDDLE_NAMES_160 ", %80, %81, %82, %83"
#define HEDDLE_NAMES_176 HEDDLE_NAMES_168 ", %84, %85, %86, %87"
#define HEDDLE_NAMES_184 HEDDLE_NAMES_176 ", %88, %89, %90, %91"
#define HEDDLE_NAMES_192 HEDDLE_NAMES_184 ", %92, %93, %94, %95"
#define HEDDLE_NAMES_200 HEDDLE_NAMES_192 ", %96, %97, %98, %99"
#define HEDDLE_NAMES_208 HEDDLE_NAMES_200 ", %100, %101, %102, %103"
#define HEDDLE_NAMES_216 HEDDLE_NAMES_208 ", %104, %105, %106, %107"
#define HEDDLE_NAMES_224 HEDDLE_NAMES_216 ", %108, %109, %110, %111"
#define HEDDLE_NAMES_232 HEDDLE_NAMES_224 ", %112, %113, %114, %115"
#define HEDDLE_NAMES_240 HEDDLE_NAMES_232 ", %116, %117, %118, %119"
#define HEDDLE_NAMES_248 HEDDLE_NAMES_240 ", %120, %121, %122, %123"
#define HEDDLE_NAMES_256 HEDDLE_NAMES_248 ", %124, %125, %126, %127"
#define HEDDLE_EACH_WIDTH(run, form)                                                                  \
  if constexpr (kSums == 4) run(form, 8, "%4", "%5", "%6", "%7", "%8", "%9", "%10");                  \
  if constexpr (kSums == 8) run(form, 16, "%8", "%9", "%10", "%11", "%12", "%13", "%14");             \
  if constexpr (kSums == 12) run(form, 24, "%12", "%13", "%14", "%15", "%16", "%17", "%18");          \
  if constexpr (kSums == 16) run(form, 32, "%16", "%17", "%18", "%19", "%20", "%21", "%22");          \
  if constexpr (kSums == 20) run(form, 40, "%20", "%21", "%22", "%23", "%24", "%25", "%26");          \
  if constexpr (kSums == 24) run(form, 48, "%24", "%25", "%26", "%27", "%28", "%29", "%30");          \
  if constexpr (kSums == 28) run(form, 56, "%28", "%29", "%30", "%31", "%32", "%33", "%34");          \
  if constexpr (kSums == 32) run(form, 64, "%32", "%33", "%34", "%35", "%36", "%37", "%38");          \
  if constexpr (kSums == 36) run(form, 72, "%36", "%37", "%38", "%39", "%40", "%41", "%42");          \
  if constexpr (kSums == 40) run(form, 80, "%40", "%41", "%42", "%43", "%44", "%45", "%46");          \
  if constexpr (kSums == 44) run(form, 88, "%44", "%45", "%46", "%47", "%48", "%49", "%50");          \
  if constexpr (kSums == 48) run(form, 96, "%48", "%49", "%50", "%51", "%52", "%53", "%54");          \
  if constexpr (kSums == 52) run(form, 104, "%52", "%53", "%54", "%55", "%56", "%57", "%58");         \
  if constexpr (kSums == 56) run(form, 112, "%56", "%57", "%58", "%59", "%60", "%61", "%62");         \
  if constexpr (kSums == 60) run(form, 120, "%60", "%61", "%62", "%63", "%64", "%65", "%66");         \
  if constexpr (kSums == 64) run(form, 128, "%64", "%65", "%66", "%67", "%68", "%69", "%70");         \
  if constexpr (kSums == 68) run(form, 136, "%68", "%69", "%70", "%71", "%72", "%73", "%74");         \
  if constexpr (kSums == 72) run(form, 144, "%72", "%73", "%74", "%75", "%76", "%77", "%78");         \
  if constexpr (kSums == 76) run(form, 152, "%76", "%77", "%78", "%79", "%80", "%81", "%82");         \
  if constexpr (kSums == 80) run(form, 160, "%80", "%81", "%82", "%83", "%84", "%85", "%86");         \
  if constexpr (kSums == 84) run(form, 168, "%84", "%85", "%86", "%87", "%88", "%89", "%90");         \
  if constexpr (kSums == 88) run(form, 176, "%88", "%89", "%90", "%91", "%92", "%93", "%94");         \
  if constexpr (kSums == 92) run(form, 184, "%92", "%93", "%94", "%95", "%96", "%97", "%98");         \
  if constexpr (kSums == 96) run(form, 192, "%96", "%97", "%98", "%99", "%100", "%101", "%102");      \
  if constexpr (kSums == 100) run(form, 200, "%100", "%101", "%102", "%103", "%104", "%105", "%106"); \
  if constexpr (kSums == 104) run(form, 208, "%104", "%105", "%106", "%107", "%108", "%109", "%110"); \
  if constexpr (kSums == 108) run(form, 216, "%108", "%109", "%110", "%111", "%112", "%113", "%114"); \
  if constexpr (kSums == 112) run(form, 224, "%112", "%113", "%114", "%115", "%116", "%117", "%118"); \
  if constexpr (kSums == 116) run(form, 232, "%116", "%117", "%118", "%119", "%120", "%121", "%122"); \
  if constexpr (kSums == 120) run(form, 240, "%120", "%121", "%122", "%123", "%124", "%125", "%126"); \
  if constexpr (kSums == 124) run(form, 248, "%124", "%125", "%126", "%127", "%128", "%129", "%130"); \
  if constexpr (kSums == 128) run(form, 256, "%128", "%129", "%130", "%131", "%132", "%133", "%134");

// The left operand on chip or in registers, of types that may lie along either dimension or along k alone.
#define HEDDLE_CHIP_MAJORS(form, width, p0, p1, p2, p3, p4, p5, p6)                                                 \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; wgmma.mma_async.sync.aligned.m64n" #width form " {"    \
               HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1, " p3 ", " p4 ";}"                                \
               : HEDDLE_SUMS_##width : "l"(a), "l"(b), "r"(i32(add)), "n"(i32(kLeft)), "n"(i32(kRight)) : "memory")
#define HEDDLE_CHIP(form, width, p0, p1, p2, p3, p4, p5, p6)                                                     \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p2 ", 0; wgmma.mma_async.sync.aligned.m64n" #width form " {" \
               HEDDLE_NAMES_##width "}, " p0 ", " p1 ", add, 1, 1;}"                                             \
               : HEDDLE_SUMS_##width : "l"(a), "l"(b), "r"(i32(add)) : "memory")
#define HEDDLE_REGISTERS_MAJORS(form, width, p0, p1, p2, p3, p4, p5, p6)                                                               \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; wgmma.mma_async.sync.aligned.m64n" #width form " {"                       \
               HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1, " p6 ";}"                                 \
               : HEDDLE_SUMS_##width : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add)), "n"(i32(kRight)) : "memory")
#define HEDDLE_REGISTERS(form, width, p0, p1, p2, p3, p4, p5, p6)                                                    \
  asm volatile("{.reg .pred add; setp.ne.u32 add, " p5 ", 0; wgmma.mma_async.sync.aligned.m64n" #width form " {"     \
               HEDDLE_NAMES_##width "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", add, 1, 1;}"                       \
               : HEDDLE_SUMS_##width : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(i32(add)) : "memory")

// sums = a b, or sums += a b where `add`. The left operand: a descriptor, or a fragment of mma.
template <Terms kTerms, Major kLeft, Major kRight, i32 kSums>
inline void multiply(float (&sums)[kSums], u64 a, u64 b, bool add) {
  static_assert(kTerms == Terms::kBf16 || kTerms == Terms::kF16 || (kLeft == Major::kK && kRight == Major::kK),
                "these are along k alone");
  if constexpr (kTerms == Terms::kBf16) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP_MAJORS, "k16.f32.bf16.bf16") }
  if constexpr (kTerms == Terms::kF16) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP_MAJORS, "k16.f32.f16.f16") }
  if constexpr (kTerms == Terms::kTf32) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP, "k8.f32.tf32.tf32") }
  if constexpr (kTerms == Terms::kE4m3) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP, "k32.f32.e4m3.e4m3") }
  if constexpr (kTerms == Terms::kE5m2) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP, "k32.f32.e5m2.e5m2") }
  if constexpr (kTerms == Terms::kE4m3E5m2) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP, "k32.f32.e4m3.e5m2") }
  if constexpr (kTerms == Terms::kE5m2E4m3) { HEDDLE_EACH_WIDTH(HEDDLE_CHIP, "k32.f32.e5m2.e4m3") }
}
template <Terms kTerms, Major kRight, i32 kSums>
inline void multiply(float (&sums)[kSums], const u32 (&a)[4], u64 b, bool add) {
  static_assert(kTerms == Terms::kBf16 || kTerms == Terms::kF16 || (kRight == Major::kK),
                "these are along k alone");
  if constexpr (kTerms == Terms::kBf16) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS_MAJORS, "k16.f32.bf16.bf16") }
  if constexpr (kTerms == Terms::kF16) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS_MAJORS, "k16.f32.f16.f16") }
  if constexpr (kTerms == Terms::kTf32) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS, "k8.f32.tf32.tf32") }
  if constexpr (kTerms == Terms::kE4m3) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS, "k32.f32.e4m3.e4m3") }
  if constexpr (kTerms == Terms::kE5m2) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS, "k32.f32.e5m2.e5m2") }
  if constexpr (kTerms == Terms::kE4m3E5m2) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS, "k32.f32.e4m3.e5m2") }
  if constexpr (kTerms == Terms::kE5m2E4m3) { HEDDLE_EACH_WIDTH(HEDDLE_REGISTERS, "k32.f32.e5m2.e4m3") }
}
// clang-format on
constexpr bool kHasProducts = true;
#else
constexpr bool kHasProducts = false;  // the others are for code that is never made
template <tile::OperandTile kTile>
inline u64 descriptor(OnChip) {
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
