// heddle env: what this machine has, and what this build uses.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "heddle/ir/executor.h"
#include "heddle/ir/op.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

template <class T, class F>
std::string names(std::span<const T* const> all, F&& name_of) {
  std::string text;
  for (const T* one : all) text += std::string(text.empty() ? "" : ", ") + name_of(*one);
  return text;
}

void run() {
  fmt::print("heddle      {}\n", HEDDLE_VERSION);
  for (const Backend* backend : all_backends()) {
    fmt::print("{}", backend->describe());
    for (const ExecutorSpec& executor : backend->executors) {
      const std::string why = executor.unavailable();
      fmt::print("executor    {}: {}{}\n", executor.name, executor.doc,
                 why.empty() ? "" : " (not here: " + why + ")");
    }
  }
  fmt::print("schedulers  {}\n", names(all_schedulers(), [](const Scheduler& s) { return s.name; }));
  fmt::print("families    {}\n", names(all_families(), [](const Family& f) { return f.model_type; }));
  fmt::print("ops         {}\n", names(all_ops(), [](const OpSpec& op) { return op.name; }));
  fmt::print("libraries   fmt {}.{}.{}, nlohmann/json {}.{}.{}, CLI11 {}\n", FMT_VERSION / 10000,
             FMT_VERSION / 100 % 100, FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR,
             NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION);
}

}  // namespace

void add_env(CLI::App& app) {
  app.add_subcommand("env", "Show the machine, its speed, and what this build has")->callback(run);
}

}  // namespace heddle
