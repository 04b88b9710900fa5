#include "bench/rows.h"

#include <cstdlib>
#include <ctime>
#include <exception>
#include <string_view>

#include <fmt/core.h>

#include "heddle/backend/cpu/describe.h"
#include "heddle/base/json.h"
#include "heddle/base/types.h"

namespace heddle::bench {
namespace {

double cpu_ms(const std::function<void()>& action) {
  const std::clock_t begin = std::clock();
  action();
  return 1e3 * double(std::clock() - begin) / CLOCKS_PER_SEC;
}

// About 30 ms of arithmetic and of reads that depend on each other, within and beyond a core's caches.
void work_unit() {
  static std::vector<u32> memory = [] {
    std::vector<u32> next(u32{1} << 21);  // 8 MB
    for (u32 i = 0; i < next.size(); ++i) next[i] = (i * 1664525u + 1013904223u) % u32(next.size());
    return next;
  }();
  u64 sum = 0;
  u32 far = 0, near = 0;
  for (u32 i = 0; i < 200'000; ++i) {
    far = memory[far], near = memory[near] % 4096;
    for (u64 j = 0; j < 8; ++j) sum = (sum ^ (sum >> 7)) * 0x9e3779b97f4a7c15u + far + near + j;
  }
  volatile u64 sink = sum;
  (void)sink;
}

}  // namespace

Rows::Rows(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const bool value = i + 1 < argc;
    if (flag == "--list") {
      list_ = true;
    } else if (flag == "--only" && value) {
      only_ = argv[++i];
    } else if (flag == "--repeats" && value && std::atoi(argv[i + 1]) > 0) {
      repeats_ = std::atoi(argv[++i]);
    } else {
      fmt::print(stderr, "{}: '{}' is no flag; --list, --only NAME, --repeats N\n", argv[0], flag);
      std::exit(2);
    }
  }
}

Rows::~Rows() {
  Json out = Json::object({{"device", name_cpu()}, {"rows", Json::array()}});
  for (const Row& row : rows_)
    out["rows"].push_back(Json::object({{"name", row.name}, {"ms", row.ms}, {"unit_ms", row.unit_ms}}));
  fmt::print("{}\n", out.dump(1));
  if (rows_.empty() && !list_ && std::uncaught_exceptions() == 0) {
    fmt::print(stderr, "there is no row '{}'; --list names them\n", only_);
    std::exit(1);
  }
}

void Rows::measure(const std::string& name, const std::function<void()>& action) {
  if (list_) rows_.push_back({name, {}, {}});
  if (!wants(name)) return;
  action();
  work_unit();
  Row row{name, {}, {}};
  for (int i = 0; i < repeats_; ++i) {
    const double before = cpu_ms(work_unit), ms = cpu_ms(action);
    row.ms.push_back(ms);
    row.unit_ms.push_back((before + cpu_ms(work_unit)) / 2);
  }
  rows_.push_back(row);
}

}  // namespace heddle::bench
