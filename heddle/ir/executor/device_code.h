// Code that backends compile for devices, which need not be in this machine: what a kernel takes, and what is
// stored on disk.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/types.h"
#include "heddle/ir/config.h"

namespace heddle {

struct Program;

// Compiled device code (cubins), keyed by a digest of its source, headers and options.
using DeviceCode = std::map<std::string, std::string>;

// Resources of a device that a compiled kernel takes.
struct KernelUse {
  std::string name;
  int registers = 0;          // per thread
  int shared_bytes = 0;       // static, per block
  int stack_bytes = 0;        // per thread
  int spill_store_bytes = 0;  // per thread, from the program's text
  int spill_load_bytes = 0;
};

// The result of compiling a tile body, or a whole kernel, for one architecture.
struct BodyCheck {
  std::string op, arch;
  int rows = 1;          // most rows of a step; kernels of many rows differ
  OpConfig config = {};  // without values: the op's default
  std::string types =
      {};  // what the compiler knew of the main op's arguments: "x f32, w bf16"; empty: nothing
  bool optimised = true;  // else it was only found out whether it compiles, and `code` is empty
  bool is_kernel =
      false;            // a whole kernel, whose `op` is "matmul_kernel.sm90" and whose `config` its constants
  KernelUse use;        // the maximum of each over the kernel and the functions that it calls
  double seconds = 0;   // compile time; about 0 when the code came from the cache
  std::string failure;  // the compiler's message, or which budget is exceeded; empty: good
  std::string made_for;   // the op, of a whole kernel too
  std::string code_name;  // a digest of its text, of all that it includes, and of its options
  std::string code, log;  // the machine code and what the compiler said, where the options keep them
};

// Compiled code that is stored on disk.
struct CodeCache {
  std::string folder;
  size_t entries = 0;
  u64 bytes = 0, limit_bytes = 0;
};

// Which bodies are compiled, and how.
struct BodyCheckOptions {
  std::vector<std::string> ops;  // their bodies; empty: those of all ops
  bool all_configs = false;      // each configuration that a case of the op has, too
  // The compiler optimises nothing and knows nothing of arguments: each body has all of its paths. It compiles many bodies in
  // one text, in less time. What the code takes says nothing then, so that no budget is held against it.
  bool unoptimised = false;
  bool kernels_alone = false;  // whole kernels, no tile bodies
  bool keeps_code = false;
  bool only_names = false;  // nothing is compiled: the checks have the names of their code
};

// A backend's compiler for its devices.
struct DeviceCompiler {
  // The compiler and its version: "NVRTC 13.0". Throws Error(kUnsupported) when this machine has no compiler;
  // so do `compile` and `check_bodies`.
  std::function<std::string()> name;
  std::vector<std::string> archs;  // the architectures that tile bodies can be compiled for: "sm_90a"
  // Compiles all code that the backend's executors need to run `programs` on `arch`.
  std::function<DeviceCode(std::span<const Program> programs, const std::string& arch)> compile;
  // Compiles the kernels of calls of single ops: for arguments as the ops' cases have them, and for those in f32, f16 and
  // bf16, with each configuration too where `all_configs` says so.
  std::function<DeviceCode(std::span<const std::string> ops, const std::string& arch, bool all_configs)>
      compile_calls;
  // Writes code to `folder` as a Python package brings it, whose name begins with heddle_cubins.
  std::function<void(const DeviceCode& code, const std::string& folder)> save_for_package;
  // Compiles tile bodies for each of `archs`. Results come by op; an op has two where steps of many rows use a
  // separate kernel. Throws Error(kInvalidArgument) for an unknown architecture or op.
  std::function<std::vector<BodyCheck>(std::span<const std::string> archs, const BodyCheckOptions& options)>
      check_bodies;
  std::function<CodeCache()> cache;  // its present state
  // returns what was removed; throws Error(kIo) when a file cannot be removed
  std::function<CodeCache()> clear_cache;
};

}  // namespace heddle
