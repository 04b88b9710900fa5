// Makes device code from text: NVRTC compiles it for one architecture, or it comes from a package or the cache on disk.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/result.h"
#include "heddle/ir/executor/device_code.h"

namespace heddle::cuda {

class CubinCache;

struct CompileRequest {
  std::string name;                  // for messages: which op or program, in which configuration
  std::string source;                // includes headers by their path in the tree (sources.h)
  std::string arch;                  // "sm_90a"
  std::vector<std::string> options;  // added to the standard ones: -DX=1, --maxrregcount=168
  bool may_be_packaged = true;       // code of a Python package will do (packaged_code.h)
};

struct Compiled {
  std::string cubin;
  std::vector<KernelUse> kernels;  // as ptxas reports them
  std::string log;                 // warnings and ptxas -v
  bool from_cache = false;
  double seconds = 0;
};

// Compiles all requests on at most `workers` threads (0: one per core). Results are in the order of the requests.
// Needs no GPU. If a text does not compile, its result is a message with the request's name, architecture and
// options, and the log. Throws Error(kUnsupported) where there is no compiler.
std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers = 0);
std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers,
                                          const CubinCache& cache);
// Compiles as try_compile does, but throws Error(kCompile) with the message of the first that does not compile.
std::vector<Compiled> compile(std::span<const CompileRequest> requests, int workers = 0);
Compiled compile(const CompileRequest& request);

// Returns options for code that need not be fast: NVRTC compiles it in a part of the time. What the process compiles
// after that is worse, whatever its options are (seen with NVRTC 13.0): compile what must be good before.
std::vector<std::string> unoptimised_options();

// Returns the name of a request's code in a DeviceCode: a digest of its text without #line, of all that it
// includes, and of its options.
std::string code_name(const CompileRequest& request);

// Reads what `--ptxas-options=-v` wrote into a log: the kernels, and the functions that were not inlined, which have
// 0 registers.
std::vector<KernelUse> parse_kernel_use(const std::string& log);

}  // namespace heddle::cuda
