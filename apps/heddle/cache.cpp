// heddle cache: shows or clears the cache of compiled device programs.
#include <memory>

#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/json.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {
namespace {

struct CacheFlags {
  bool clear = false, json = false;
};

void show(const DeviceCompiler& compiler, const CacheFlags& flags) {
  const CodeCache removed = flags.clear ? compiler.clear_cache() : CodeCache{};
  const CodeCache cache = compiler.cache();
  if (flags.json) {
    return print_json(Json::object({{"bytes", cache.bytes},
                                    {"entries", cache.entries},
                                    {"folder", cache.folder},
                                    {"limit_bytes", cache.limit_bytes},
                                    {"removed_bytes", removed.bytes},
                                    {"removed_entries", removed.entries}}));
  }
  if (flags.clear)
    print(fmt::format("removed     {} compiled programs, {} bytes\n", removed.entries, removed.bytes));
  print(fmt::format("folder      {}\nentries     {}\nbytes       {} of {}\n", cache.folder, cache.entries,
                    cache.bytes, cache.limit_bytes));
}

void run(const CacheFlags& flags) {
  for (const Backend* backend : all_backends())
    if (backend->compiler) show(*backend->compiler, flags);
}

}  // namespace

void add_cache(CLI::App& app) {
  auto flags = std::make_shared<CacheFlags>();
  Command command(app, "cache", "Show or clear the compiled device programs on disk");
  command.argument("--clear", &flags->clear, "remove them; heddle compiles them again when it needs them");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "The folder is $HEDDLE_CACHE, or $XDG_CACHE_HOME/heddle, or ~/.cache/heddle. If it exceeds its limit,\n"
      "the programs that were not used for the longest time are removed.\n"
      "Example: heddle cache --clear");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
