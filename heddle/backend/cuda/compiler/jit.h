// Programs from text: compiled by NVRTC for one architecture, or taken from the cache on disk.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/result.h"
#include "heddle/ir/device_code.h"

namespace heddle::cuda {

class CubinCache;

struct CompileRequest {
  std::string name;                  // for messages: which op or program, in which configuration
  std::string source;                // includes headers by their path in the tree (sources.h)
  std::string arch;                  // "sm_90a"
  std::vector<std::string> options;  // beside the standard ones: -DX=1, --maxrregcount=168
};

struct Compiled {
  std::string cubin;
  std::vector<KernelUse> kernels;  // as ptxas says
  std::string log;                 // warnings and ptxas -v
  bool from_cache = false;
  double seconds = 0;
};

// Compiles all requests on at most `workers` threads (0: one a core); results in the order of the requests. Needs no
// GPU. A text that does not compile is a message that names the request, its architecture and options, with the log.
// Throws Error(kUnsupported) where there is no compiler.
std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers = 0);
std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers,
                                          const CubinCache& cache);
// The same, but throws Error(kCompile) with the message of the first that does not compile.
std::vector<Compiled> compile(std::span<const CompileRequest> requests, int workers = 0);
Compiled compile(const CompileRequest& request);

// What a request's code is kept under in a DeviceCode: a digest of its text, all that it may include, and its options.
std::string code_name(const CompileRequest& request);

// Reads what `--ptxas-options=-v` wrote into a log: kernels, and with 0 registers the functions that stayed calls.
std::vector<KernelUse> parse_kernel_use(const std::string& log);

}  // namespace heddle::cuda
