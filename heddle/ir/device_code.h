// Code that backends compile for devices, which need not be here: what a kernel of it takes, and what is kept on disk.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

struct Program;

// What devices run programs by, by a digest of all that it was compiled from.
using DeviceCode = std::map<std::string, std::string>;

// What a compiled kernel takes of a device.
struct KernelUse {
  std::string name;
  int registers = 0;          // a thread
  int shared_bytes = 0;       // static, a block
  int stack_bytes = 0;        // a thread
  int spill_store_bytes = 0;  // a thread, in the text of the program
  int spill_load_bytes = 0;
};

// A tile body, compiled for one architecture.
struct BodyCheck {
  std::string op, arch;
  int rows = 1;         // of a step at most: kernels of many rows differ
  KernelUse use;        // the largest of each over the kernel and what it calls
  double seconds = 0;   // compile time; about 0 where it came from the cache
  std::string failure;  // the compiler's message, or what is over the budget; empty: good
};

// Compiled code that is kept on disk.
struct CodeCache {
  std::string folder;
  size_t entries = 0;
  u64 bytes = 0, limit_bytes = 0;
};

// What a backend says and does about code for its devices.
struct DeviceCompiler {
  // The compiler and its version: "NVRTC 13.0". Throws Error(kUnsupported) where there is none here; `compile` and
  // `check_bodies` do so too.
  std::function<std::string()> name;
  std::vector<std::string> archs;  // for which tile bodies can be compiled: "sm_90a"
  // All code that the backend's executors need to run `programs` on `arch`.
  std::function<DeviceCode(std::span<const Program> programs, const std::string& arch)> compile;
  // Compiles the bodies of `ops` (empty: of all) for each of `archs`. Results come by op; an op has two where steps of
  // many rows have a kernel of their own. Throws Error(kInvalidArgument) for an architecture or op that is not known.
  std::function<std::vector<BodyCheck>(std::span<const std::string> archs, std::span<const std::string> ops)>
      check_bodies;
  std::function<CodeCache()> cache;        // as it is now
  std::function<CodeCache()> clear_cache;  // returns what was removed; throws Error(kIo) where a file stays
};

}  // namespace heddle
