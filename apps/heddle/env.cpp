// heddle env: shows this machine's devices and the parts of this build.
#include <cstdio>

#include <CLI/Version.hpp>
#include <fmt/core.h>
#include <spdlog/version.h>
#include <xxhash.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/json.h"
#include "heddle/engine/default_executor.h"
#include "heddle/ir/executor.h"
#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

template <class F>
std::string names(const auto& all, F&& name_of) {
  std::string text;
  for (const auto* one : all) text += std::string(text.empty() ? "" : ", ") + name_of(*one);
  return text;
}

// Describes a backend. A reason that is there already is not said again.
std::string describe_backend(const Backend& backend) {
  std::string text = backend.describe();
  for (const ExecutorSpec& executor : backend.executors) {
    const std::string why = executor.unavailable(), reason = text.find(why) == text.npos ? ": " + why : "";
    text += fmt::format("executor    {}: {}{}\n", executor.name, executor.doc,
                        why.empty() ? "" : " (not here" + reason + ")");
  }
  return text;
}

void run() {
  print("heddle      {}\n", HEDDLE_VERSION);
  for (const Backend* backend : all_backends()) print(describe_backend(*backend));
  const DefaultExecutor chosen = default_executor();
  print("default     {}{}\n", chosen.name, chosen.device > 0 ? fmt::format(" on GPU {}", chosen.device) : "");
  print("schedulers  {}\n", names(all_schedulers(), [](const Scheduler& s) { return s.name; }));
  print("families    {}\n", names(all_families(), [](const Family& f) { return f.model_type; }));
  print("ops         {}\n", names(all_ops(), [](const OpSpec& op) -> const std::string& { return op.name; }));
  char pcre[64] = {};
  pcre2_config(PCRE2_CONFIG_VERSION, pcre);
  const unsigned xxhash = XXH_versionNumber();
  print(
      "libraries   fmt {}.{}.{}, spdlog {}.{}.{}, {}, CLI11 {}, xxHash {}.{}.{}, PCRE2 "
      "{}\n",
      FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100, SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR,
      SPDLOG_VER_PATCH, json_library(), CLI11_VERSION, xxhash / 10000, xxhash / 100 % 100, xxhash % 100,
      pcre);
}

}  // namespace

void add_env(CLI::App& app) {
  Command command(app, "env", "Show the machine, its speed, and the parts of this build");
  command.footer(
      "Other commands take the names of executors, schedulers, families and ops.\n"
      "A token reads every weight once, so it takes at least bytes of weights / read bandwidth.\n"
      "Example: heddle env");
  command.action(run);
}

}  // namespace heddle
