#include "heddle/ir/executor/executor.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/near_names.h"

namespace heddle {

namespace {

struct Backends {
  std::mutex mutex;
  std::vector<const Backend*> all;
};

Backends& backends() {
  static Backends known;
  return known;
}

// Finds the executor of that name, and its backend.
std::pair<const Backend*, const ExecutorSpec*> find_executor(std::string_view name) {
  std::vector<std::string> known;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors) {
      if (name == executor.name) return {backend, &executor};
      known.emplace_back(executor.name);
    }
  fail(ErrorCode::kInvalidArgument, "[executor] there is none named '{}'; there are {}{}", name,
       fmt::join(known, ", "), did_you_mean(name, known));
}

}  // namespace

void add_backend(const Backend& backend) {
  Backends& known = backends();
  const std::lock_guard lock(known.mutex);
  for (const Backend* other : known.all)
    require(std::string_view(other->name) != backend.name,
            "[backend] there is a {} already; names must differ", backend.name);
  known.all.push_back(&backend);
}

std::vector<const Backend*> all_backends() {
  Backends& known = backends();
  const std::lock_guard lock(known.mutex);
  return known.all;
}

std::string DeviceKind::text() const {
  std::string text = name.empty() ? executor : name;
  if (!arch.empty()) text += ": " + arch;
  return units > 0 ? fmt::format("{}, {} multiprocessors", text, units) : text;
}

const ExecutorSpec& get_executor(std::string_view name) {
  return *find_executor(name).second;
}
const Backend& backend_of(std::string_view executor) {
  return *find_executor(executor).first;
}

std::vector<std::string> known_archs() {
  std::vector<std::string> known;
  for (const Backend* backend : all_backends())
    if (backend->compiler)
      known.insert(known.end(), backend->compiler->archs.begin(), backend->compiler->archs.end());
  return known;
}

const Backend& backend_for_arch(std::string_view arch) {
  for (const Backend* backend : all_backends())
    if (backend->compiler &&
        std::ranges::find(backend->compiler->archs, arch) != backend->compiler->archs.end())
      return *backend;
  const std::vector<std::string> known = known_archs();
  for (const Backend* backend : all_backends())
    for (const DeviceKind& kind : backend->kinds)
      require(kind.name != arch || kind.arch.empty(), "[arch] {} is a card; its architecture is {}", arch,
              kind.arch);
  fail(ErrorCode::kInvalidArgument, "[arch] {} is no architecture that heddle has code for; those are {}{}",
       arch, fmt::join(known, ", "), did_you_mean(arch, known));
}

namespace {

void bind(const Field& field, std::byte* args, const Memory& memory) {
  if (field.is_attribute()) return;
  Tensor& value = field.elements(args);
  if (value.buffer == kNoBuffer) return;
  value.data = reinterpret_cast<u8*>(memory.base[value.buffer]) + value.offset;
  if (field.is_weight()) field.weight(args).table = memory.panels[value.buffer];
}

}  // namespace

std::vector<BoundCall> bind_calls(const Program& program, const Memory& memory) {
  require(memory.base.size() == program.buffers.size(),
          "[program] {} buffers have memory; the program has {}", memory.base.size(), program.buffers.size());
  std::vector<BoundCall> bound;
  for (const Call& call : program.calls) {
    Node node = program.node_of(call);
    BoundCall result;
    for (Part& part : node.parts) {
      for (const Field& field : part.op->fields) bind(field, part.args.data(), memory);
      result.args.push_back(std::move(part.args));
    }
    bound.push_back(std::move(result));
  }
  return bound;
}

bool clamp_to_live(LiveRows live, const StepHost& host, TileCoord& tile) {
  if (live == LiveRows::kAll) return true;
  const i32 rows = live == LiveRows::kRows ? host.rows : host.wanted;
  if (tile[0] >= rows) return false;
  if (tile[1] > rows) tile[1] = rows;
  return true;
}

}  // namespace heddle
