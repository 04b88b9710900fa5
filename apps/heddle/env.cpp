// heddle env: shows this machine's devices and the parts of this build.
#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include <CLI/Version.hpp>
#include <fmt/ranges.h>
#include <spdlog/version.h>
#include <xxhash.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/json.h"
#include "heddle/engine/default_executor.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

template <class F>
std::vector<std::string> names(const auto& all, F&& name_of) {
  std::vector<std::string> made;
  for (const auto* one : all) made.emplace_back(name_of(*one));
  return made;
}

// Names and texts that a backend has for the machine.
std::vector<std::pair<std::string, std::string>> lines_of(const Backend& backend) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream text(backend.describe());
  for (std::string line; std::getline(text, line);) {
    const size_t end = std::min(line.find(' '), line.size());
    const size_t begin = std::min(line.find_first_not_of(' ', end), line.size());
    lines.emplace_back(line.substr(0, end), line.substr(begin));
  }
  return lines;
}

std::vector<std::string> libraries() {
  char pcre[64] = {};
  pcre2_config(PCRE2_CONFIG_VERSION, pcre);
  const unsigned xxhash = XXH_versionNumber();
  return {fmt::format("fmt {}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
          fmt::format("spdlog {}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH),
          json_library(),
          fmt::format("CLI11 {}", CLI11_VERSION),
          fmt::format("xxHash {}.{}.{}", xxhash / 10000, xxhash / 100 % 100, xxhash % 100),
          fmt::format("PCRE2 {}", pcre)};
}

// All that is shown.
struct Environment {
  std::vector<std::string> schedulers = names(all_schedulers(), [](const Scheduler& s) { return s.name; });
  std::vector<std::string> families = names(all_families(), [](const Family& f) { return f.model_type; });
  std::vector<std::string> ops = names(all_ops(), [](const OpSpec& op) { return op.name; });
  DefaultExecutor chosen = default_executor();
};

void show_json(const Environment& here) {
  Json machine = Json::array(), executors = Json::array();
  for (const Backend* backend : all_backends()) {
    for (const auto& [name, text] : lines_of(*backend))
      machine.push_back(Json::object({{"name", name}, {"text", text}}));
    for (const ExecutorSpec& executor : backend->executors)
      executors.push_back(Json::object(
          {{"name", executor.name}, {"doc", executor.doc}, {"unavailable", executor.unavailable()}}));
  }
  print_json(Json::object(
      {{"heddle", HEDDLE_VERSION},
       {"machine", machine},
       {"executors", executors},
       {"default", Json::object({{"executor", here.chosen.name}, {"device", here.chosen.device}})},
       {"schedulers", here.schedulers},
       {"families", here.families},
       {"ops", here.ops},
       {"libraries", libraries()}}));
}

// A reason that is there already is not said again.
void print_backend(const Backend& backend) {
  std::string said;
  for (const auto& [name, text] : lines_of(backend)) {
    said += text + "\n";
    print(listed(name, text));
  }
  for (const ExecutorSpec& executor : backend.executors) {
    const std::string why = executor.unavailable(), reason = said.find(why) == said.npos ? ": " + why : "";
    said += reason;
    print(listed("executor", fmt::format("{}: {}{}", executor.name, executor.doc,
                                         why.empty() ? "" : " (not here" + reason + ")")));
  }
}

void run(bool json) {
  const Environment here;
  if (json) return show_json(here);
  print(listed("heddle", HEDDLE_VERSION));
  for (const Backend* backend : all_backends()) print_backend(*backend);
  const std::string device = here.chosen.device > 0 ? fmt::format(" on cuda:{}", here.chosen.device) : "";
  print(listed("default", here.chosen.name + device));
  const auto show = [](const char* name, const std::vector<std::string>& all) {
    print(listed(name, fmt::format("{}", fmt::join(all, ", "))));
  };
  show("schedulers", here.schedulers);
  show("families", here.families);
  show("ops", here.ops);
  show("libraries", libraries());
}

}  // namespace

void add_env(CLI::App& app) {
  Command command(app, "env", "Show the machine, its speed, and the parts of this build");
  command.footer(
      "Other commands take the names of executors, schedulers, families and ops.\n"
      "A token reads every weight once, so it takes at least bytes of weights / read bandwidth.\n"
      "Example: heddle env");
  auto json = std::make_shared<bool>(false);
  command.argument("--json", json.get(), "print JSON");
  command.action([json] { run(*json); });
}

}  // namespace heddle
