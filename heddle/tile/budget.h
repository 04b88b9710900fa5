// States what a kernel spends: registers by role, shared memory by name. All sums are constants, asserted where a kernel is declared:
//
//   constexpr Budget kBudget = Budget{}.role("bring", 4, 40).role("work", 8, 232).part("ring", 4 * 49152, 1024);
//   static_assert(kBudget.fits());
//
// A kernel takes offsets and registers by name, and its plan on the host takes threads and bytes, so a function of the kernel's
// constants that returns a budget is all that both sides know of it.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/layout.h"

namespace heddle::tile {

// A short text that can be part of a template parameter.
struct Name {
  static constexpr i32 kMost = 23;
  char text[kMost + 1] = {};

  constexpr Name() = default;
  constexpr Name(const char* from) {  // a literal stands for a name
    i32 i = 0;
    for (; i < kMost && from[i] != 0; ++i) text[i] = from[i];
    hold(from[i] == 0, "a name has at most 23 characters");
  }
  friend constexpr bool operator==(const Name&, const Name&) = default;
};

// Warps that do the same, with the registers that a thread of them has after the roles have parted (setmaxnreg).
struct Role {
  Name name;
  i32 warps = 0, registers = 0;
  friend constexpr bool operator==(const Role&, const Role&) = default;
};
// Bytes of shared memory.
struct Part {
  Name name;
  i32 offset = 0, bytes = 0;
  friend constexpr bool operator==(const Part&, const Part&) = default;
};

// One SM gives this to a CTA.
struct SmLimits {
  i32 registers = 65536, shared_bytes = 227 * 1024, threads = 1024;
};

struct Budget {
  static constexpr i32 kMostRoles = 6, kMostParts = 16;
  i32 role_count = 0, part_count = 0;
  Role roles[kMostRoles] = {};
  Part parts[kMostParts] = {};
  bool parted = false;  // roles exchange registers; else all have what the launch gives

  constexpr Budget role(const Name& name, i32 warps, i32 registers) const {
    hold(role_count < kMostRoles, "a budget has at most kMostRoles roles");
    Budget more = *this;
    more.roles[more.role_count++] = {name, warps, registers};
    more.parted = more.role_count > 1;
    return more;
  }
  // After the parts before it, aligned.
  constexpr Budget part(const Name& name, i32 bytes, i32 alignment = 16) const {
    hold(part_count < kMostParts, "a budget has at most kMostParts parts");
    hold(alignment > 0 && (alignment & (alignment - 1)) == 0, "an alignment is a power of two");
    Budget more = *this;
    const i32 offset = (shared_bytes() + alignment - 1) / alignment * alignment;
    more.parts[more.part_count++] = {name, offset, bytes};
    return more;
  }

  // mbarriers, of 8 bytes each.
  constexpr Budget barriers(const Name& name, i32 count) const { return part(name, 8 * count, 8); }

  // These are constants wherever they stand: a kernel never looks for a name.
  consteval u32 offset(const Name& name) const {
    i32 found = -1;
    for (i32 i = 0; i < part_count; ++i)
      if (parts[i].name == name) found = parts[i].offset;
    hold(found >= 0, "a part of the budget has this name");
    return u32(found);
  }
  consteval u32 registers_of(const Name& name) const {
    i32 found = -1;
    for (i32 i = 0; i < role_count; ++i)
      if (roles[i].name == name) found = roles[i].registers;
    hold(found >= 0, "a role of the budget has this name");
    return u32(found);
  }
  constexpr i32 shared_bytes() const {
    return part_count == 0 ? 0 : parts[part_count - 1].offset + parts[part_count - 1].bytes;
  }
  constexpr i32 warps() const {
    i32 count = 0;
    for (i32 i = 0; i < role_count; ++i) count += roles[i].warps;
    return count;
  }
  constexpr i32 threads() const { return 32 * warps(); }
  // Registers of all threads once the roles have parted.
  constexpr i32 registers() const {
    i32 count = 0;
    for (i32 i = 0; i < role_count; ++i) count += 32 * roles[i].warps * roles[i].registers;
    return count;
  }
  // A thread's registers at launch, when one CTA has the SM: the compiler is told by __launch_bounds__(threads(), 1).
  constexpr i32 launch_registers(const SmLimits& sm = {}) const {
    const i32 each = sm.registers / (threads() > 0 ? threads() : 1) / 8 * 8;
    return each < 255 ? each : 255;
  }
  // The first rule that the budget breaks, or nullptr. A role that asks for more registers than the launch holds waits
  // forever, without a message.
  constexpr const char* broken_rule(const SmLimits& sm = {}) const {
    if (role_count == 0) return "a kernel has a role";
    if (threads() > sm.threads) return "there are at most 1,024 threads";
    if (shared_bytes() > sm.shared_bytes) return "the shared memory of an SM holds all parts";
    for (i32 i = 0; i < role_count; ++i) {
      if (!parted) continue;
      if (roles[i].warps % 4 != 0) return "four warps exchange registers together";
      if (roles[i].registers % 8 != 0) return "registers are exchanged by eights";
      if (roles[i].registers < 24 || roles[i].registers > 256) return "a role has 24 to 256 registers";
    }
    if (parted && registers() > launch_registers(sm) * threads())
      return "roles together have what the launch has";
    if (!parted && roles[0].registers > launch_registers(sm)) return "a thread has what the launch gives it";
    return nullptr;
  }
  constexpr bool fits(const SmLimits& sm = {}) const { return broken_rule(sm) == nullptr; }
  friend constexpr bool operator==(const Budget&, const Budget&) = default;
};

// The most stages, at most `most`, with which budget_of(stages) takes at most `bytes` of shared memory. All stages take the same.
template <class BudgetOf>
constexpr i32 most_stages(i32 most, i64 bytes, const BudgetOf& budget_of) {
  const i64 besides = budget_of(0).shared_bytes(), stage = budget_of(1).shared_bytes() - besides;
  return (bytes - besides) / stage < most ? i32((bytes - besides) / stage) : most;
}

}  // namespace heddle::tile
