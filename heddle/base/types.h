// Integers of a fixed width. Read by host and device: no standard headers.
#pragma once

namespace heddle {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8);

}  // namespace heddle
