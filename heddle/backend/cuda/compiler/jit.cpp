#include "heddle/backend/cuda/compiler/jit.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <sstream>

#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/cubin_cache.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/compiler/packaged_code.h"
#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/base/stopwatch.h"

namespace heddle::cuda {
namespace {

// -default-device makes every function one of the device, so that the headers need no marks.
std::vector<std::string> all_options(const CompileRequest& request) {
  std::vector<std::string> options = {"--std=c++20", "-default-device", "--gpu-architecture=" + request.arch,
                                      "--ptxas-options=-v"};
  options.insert(options.end(), request.options.begin(), request.options.end());
  return options;
}

// A source without the lines that say where its parts stand, which change messages alone.
std::string placeless(std::string_view source) {
  std::string text;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size() - 1) + 1;
    if (!source.starts_with("#line ")) text += source.substr(0, end);
    source.remove_prefix(end);
  }
  return text;
}

std::string key_of(const CompileRequest& request, const std::vector<std::string>& options,
                   const Nvrtc& nvrtc) {
  const std::string version = nvrtc.version_text(), source = placeless(request.source);
  const std::string included = source_tree().digest_of_included(source);
  std::vector<std::string_view> parts = {included, version, source};
  parts.insert(parts.end(), options.begin(), options.end());
  return digest_of(parts);
}

}  // namespace

std::string code_name(const CompileRequest& request) {
  const std::vector<std::string> options = all_options(request);
  const std::string source = placeless(request.source);
  const std::string included = source_tree().digest_of_included(source);
  std::vector<std::string_view> parts = {included, source};
  parts.insert(parts.end(), options.begin(), options.end());
  return digest_of(parts);
}

namespace {

// Throws Error(kUnsupported) where nothing else than a package could have it.
std::optional<Compiled> packaged_code(const CompileRequest& request) {
  const PackagedCode& code = PackagedCode::of_process();
  if (!request.may_be_packaged || !code.is_there()) return std::nullopt;
  const std::string name = code_name(request);
  if (std::optional<CubinCache::Entry> entry = code.find(name))
    return Compiled{.cubin = std::move(entry->cubin), .kernels = {}, .log = {}, .from_cache = true};
  if (!why_no_compiler().empty())
    fail(ErrorCode::kUnsupported, "[{}] its code for {}, {}, is not in the packages ({}), and {}",
         request.name, request.arch, name, code.text(), why_no_compiler());
  return std::nullopt;
}

// Finds a request's code in a package or the cache.
std::optional<Compiled> find_ready(const CompileRequest& request, const CubinCache& cache) {
  if (std::optional<Compiled> packaged = packaged_code(request)) return packaged;
  std::optional<CubinCache::Entry> entry = cache.find(key_of(request, all_options(request), Nvrtc::get()));
  if (!entry) return std::nullopt;
  return Compiled{.cubin = std::move(entry->cubin),
                  .kernels = parse_kernel_use(entry->log),
                  .log = std::move(entry->log),
                  .from_cache = true};
}

Result<Compiled> compile_one(const CompileRequest& request, const CubinCache& cache) {
  const Stopwatch watch;
  if (std::optional<Compiled> ready = find_ready(request, cache)) return *std::move(ready);
  const std::vector<std::string> options = all_options(request);
  const Nvrtc& nvrtc = Nvrtc::get();
  Nvrtc::Output output = nvrtc.compile({request.name, request.source, options}, source_tree().files);
  if (!output.ok)
    return Failure{fmt::format("[{}] does not compile for {} with {} (NVRTC {}):\n{}", request.name,
                               request.arch, fmt::join(options, " "), nvrtc.version_text(), output.log)};
  cache.store(key_of(request, options, nvrtc), {output.cubin, output.log});
  return Compiled{.cubin = std::move(output.cubin),
                  .kernels = parse_kernel_use(output.log),
                  .log = std::move(output.log),
                  .seconds = watch.seconds()};
}

// The number before `what`, which begins with a space, in a line of ptxas; 0 where it is not there. Not by std::regex:
// in libstdc++ making one fills a table of the locale without a lock, and several threads come here.
int number_before(std::string_view line, std::string_view what) {
  const size_t end = line.find(what);
  if (end == line.npos) return 0;
  line = line.substr(0, end);
  line.remove_prefix(line.find_last_not_of("0123456789") + 1);
  int number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

}  // namespace

// NVRTC has the first of these from 12.8 on, where it takes less time than the second.
std::vector<std::string> unoptimised_options() {
  return {Nvrtc::get().version() >= 12080 ? "--Ofast-compile=max" : "--device-debug"};
}

std::vector<KernelUse> parse_kernel_use(const std::string& log) {
  constexpr std::string_view kHeading = "Function properties for ";
  std::vector<KernelUse> kernels;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (const size_t at = line.find(kHeading); at != line.npos)
      kernels.push_back({.name = line.substr(at + kHeading.size())});
    if (kernels.empty()) continue;
    KernelUse& kernel = kernels.back();
    if (line.find("bytes stack frame") != std::string::npos) {
      kernel.stack_bytes = number_before(line, " bytes stack frame");
      kernel.spill_store_bytes = number_before(line, " bytes spill stores");
      kernel.spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find("registers") != std::string::npos) {
      kernel.registers = number_before(line, " registers");
      kernel.shared_bytes = number_before(line, " bytes smem");
      kernel.stack_bytes = std::max(kernel.stack_bytes, number_before(line, " bytes cumulative stack size"));
    }
  }
  return kernels;
}

std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers) {
  return try_compile(requests, workers, CubinCache::of_process());
}

std::vector<Result<Compiled>> try_compile(std::span<const CompileRequest> requests, int workers,
                                          const CubinCache& cache) {
  std::vector<Result<Compiled>> results(requests.size(), Failure{});
  std::vector<std::optional<Compiled>> ready(requests.size());
  parallel_for(requests.size(), workers, [&](size_t i) { ready[i] = find_ready(requests[i], cache); });
  std::vector<size_t> left;  // an estimate of their time counts none that is there
  for (size_t i = 0; i < requests.size(); ++i)
    if (ready[i])
      results[i] = *std::move(ready[i]);
    else
      left.push_back(i);
  parallel_for_with_progress("compiling", "kernels", left.size(), workers,
                             [&](size_t at) { results[left[at]] = compile_one(requests[left[at]], cache); });
  return results;
}

std::vector<Compiled> compile(std::span<const CompileRequest> requests, int workers) {
  std::vector<Compiled> compiled;
  for (Result<Compiled>& result : try_compile(requests, workers))
    compiled.push_back(std::move(result).or_throw(ErrorCode::kCompile));
  return compiled;
}

Compiled compile(const CompileRequest& request) {
  return std::move(compile(std::span(&request, 1), 1).front());
}

}  // namespace heddle::cuda
