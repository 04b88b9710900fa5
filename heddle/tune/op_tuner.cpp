#include "heddle/tune/op_tuner.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/base/cache_folder.h"
#include "heddle/base/digest.h"
#include "heddle/base/parallel.h"
#include "heddle/base/python_packages.h"
#include "heddle/base/stopwatch.h"
#include "heddle/ir/call/call_cache.h"
#include "heddle/ir/shape.h"

namespace heddle::tune {
namespace {

constexpr i64 kAlignment = 128;  // bytes
constexpr i64 kCacheBytes =
    64 << 20;  // more than the last cache of most devices that a call's operands may stay in
constexpr i64 kMostBytes = 512 << 20;  // copies of a call's operands together

// Memory for the time of a search.
class Piece {
 public:
  Piece(MemorySpace* space, i64 bytes)
      : space_(space),
        data_(space ? space->allocate(size_t(bytes))
                    : static_cast<std::byte*>(::operator new(size_t(bytes), std::align_val_t(kAlignment)))) {
    if (!space) std::memset(data_, 0, size_t(bytes));
  }
  ~Piece() {
    if (!data_) return;
    space_ ? space_->release(data_) : ::operator delete(data_, std::align_val_t(kAlignment));
  }
  Piece(Piece&& other) noexcept : space_(other.space_), data_(std::exchange(other.data_, nullptr)) {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  std::byte* data() const { return data_; }

 private:
  MemorySpace* space_;
  std::byte* data_;
};

// Bytes from the first element to the end of the last one. A tensor with backward strides has 0: it is shared.
i64 span_of(const Tensor& tensor) {
  i64 last = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.stride[d] < 0 || tensor.size[d] == 0) return 0;
    last += (tensor.size[d] - 1) * tensor.stride[d];
  }
  return bytes_of(tensor.dtype, last + 1);
}

void set_dense(Tensor& tensor) {
  i64 dense = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) tensor.stride[d] = dense, dense *= tensor.size[d];
}

// Sets of operands of one call. Set 0 reads the caller's inputs; the others read copies. Outputs are always of their own,
// so that neither they nor inputs that share their memory change.
class Operands {
 public:
  Operands(const OpSpec& op, const std::vector<std::byte>& args, MemorySpace* space)
      : op_(op), space_(space) {
    i64 bytes = 0;
    each_tensor(args, [&](const Field&, const Tensor& tensor) { bytes += span_of(tensor) + kAlignment; });
    const i64 room = std::max<i64>(1, kMostBytes / std::max<i64>(bytes, 1));
    const int sets = buffers_for(std::max<i64>(bytes, 1), kCacheBytes, int(std::min<i64>(room, 64)));
    for (int set = 0; set < sets; ++set) add_set(args, set == 0);
  }
  int count() const { return int(sets_.size()); }
  const std::byte* operator[](int set) const { return sets_[size_t(set)].data(); }

 private:
  template <class F>
  void each_tensor(const std::vector<std::byte>& args, F&& f) const {
    for (const Field& field : op_.fields)
      if (!field.is_attribute() && field.elements(args.data()).rank > 0)
        f(field, field.elements(args.data()));
  }

  void add_set(std::vector<std::byte> args, bool shares_inputs) {
    for (const Field& field : op_.fields) {
      if (field.is_attribute() || field.is_weight()) continue;
      Tensor& tensor = field.tensor(args.data());
      if (tensor.rank == 0) continue;
      if (field.writes() && span_of(tensor) == 0) set_dense(tensor);
      tensor.buffer = 0;  // it exists
      const i64 bytes = span_of(tensor);
      if (bytes == 0 || (shares_inputs && !field.writes())) continue;
      const i64 shift = i64(reinterpret_cast<size_t>(tensor.data) % kAlignment);
      pieces_.emplace_back(space_, bytes + shift);
      std::byte* const to = pieces_.back().data() + shift;
      if (!field.writes()) {
        std::vector<std::byte> values(static_cast<size_t>(bytes));
        copy_from(space_, values.data(), reinterpret_cast<const std::byte*>(tensor.data), values.size());
        copy_to(space_, to, values.data(), values.size());
      }
      tensor.data = reinterpret_cast<u8*>(to);
    }
    sets_.push_back(std::move(args));
  }

  const OpSpec& op_;
  MemorySpace* const space_;
  std::vector<Piece> pieces_;
  std::vector<std::vector<std::byte>> sets_;
};

// Compiles and times configurations of one call.
class CallWork {
 public:
  CallWork(const OpSpec& op, const std::vector<std::byte>& args, const CallSite& site, OpCaller& caller,
           MemorySpace* space)
      : op_(op), site_(site), caller_(caller), space_(space), operands_(op, args, space) {}

  Work work() {
    return {.compile = [this](const OpConfig& config) { needs(config); },
            .time = [this](const OpConfig& config, int calls, int) { return time(config, calls); }};
  }

 private:
  CallNeeds needs(const OpConfig& config) const {
    CallSite site = site_;
    site.config = &config;
    return caller_.needs(op_, operands_[0], site);
  }

  double time(const OpConfig& config, int calls) {
    const i64 wanted = needs_of(config);
    if (wanted > workspace_bytes_) {
      workspace_.clear();
      workspace_.emplace_back(space_, wanted);
      workspace_bytes_ = wanted;
    }
    CallSite site = site_;
    site.config = &config;
    site.workspace = workspace_.empty() ? nullptr : workspace_[0].data();
    site.workspace_bytes = workspace_bytes_;
    caller_.wait(site);
    const Stopwatch watch;
    for (int i = 0; i < calls; ++i) caller_.run(op_, operands_[next_++ % operands_.count()], site);
    caller_.wait(site);
    return std::max(1.0, 1e9 * watch.seconds() / calls);
  }

  i64 needs_of(const OpConfig& config) {
    const auto [at, is_new] = workspace_of_.try_emplace(config.text(), 0);
    if (is_new) at->second = needs(config).workspace_bytes;
    return at->second;
  }

  const OpSpec& op_;
  const CallSite site_;
  OpCaller& caller_;
  MemorySpace* const space_;
  const Operands operands_;
  std::vector<Piece> workspace_;
  i64 workspace_bytes_ = 0;
  int next_ = 0;  // the set of operands of the next call
  std::map<std::string, i64> workspace_of_;
};

// As a word of a key: other characters become "-".
std::string word(std::string text) {
  for (char& c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (!plain) c = '-';
  }
  return text;
}

MemorySpace* space_of(const Backend& backend, i32 device) {
  for (const ExecutorSpec& executor : backend.executors)
    if (executor.space) return &executor.space(device);
  return nullptr;
}

std::string tuned_folder() {
  if (const char* const folder = std::getenv("HEDDLE_TUNED"); folder && *folder) return folder;
  try {
    return cache_folder() + "/tuned";
  } catch (const Error&) {  // a process without a home: the choices end with it
    return {};
  }
}

std::vector<std::string> shipped_folders() {
  std::vector<std::string> folders;
  for (const std::string& package : packaged_folders(python_packages()))
    folders.push_back(package + "/tuning");
  return folders;
}

}  // namespace

Settings& thread_settings() {
  static thread_local Settings settings;
  return settings;
}

std::string TunedConfig::summary() const {
  return fmt::format("tuned: config {} of {}", config.text(), of);
}

Key key_of_call(const OpSpec& op, const std::byte* args, const CallSite& site) {
  Key key(op.name);
  if (op.text) {  // an op of one's own: what was fastest for another body is not known to be so for this one
    const OpText text = op.text();
    const std::string_view parts[] = {text.header, text.body};
    key.fact("text", digest_of(parts));
  }
  std::map<std::string, bool> first_only;
  std::map<std::string, i64> sizes;
  for (const Field& field : op.fields) {
    if (field.is_attribute()) {
      key.fact(word(field.name), word(attribute_text(field, args)));
      continue;
    }
    const Tensor& tensor = field.elements(args);
    if (tensor.rank == 0 || field.writes()) continue;
    key.fact(word(field.name), name(tensor.dtype));
    const std::vector<FieldDim> dims = field.dims_of(args);
    for (size_t d = 0; d < dims.size() && d < tensor.rank; ++d) {
      bool& first = first_only.try_emplace(dims[d].name, true).first->second;
      first = first && d == 0;
      sizes.try_emplace(dims[d].name, tensor.size[d] / std::max(dims[d].scale, 1));
    }
  }
  for (const auto& [dim, size] : sizes)
    key.size(word(dim), size, first_only[dim] ? SizeClasses::powers() : SizeClasses::exact());
  if (site.device < 0) key.fact("threads", std::to_string(site.threads > 0 ? site.threads : allowed_cores()));
  return key;
}

OpTuner::OpTuner(const Backend& backend, i32 device, const std::string& folder,
                 std::vector<std::string> shipped)
    : backend_(backend),
      space_(space_of(backend, device)),
      on_gpu_(space_ != nullptr),
      store_({.device = backend.device(device), .folder = folder, .shipped = std::move(shipped)}),
      knows_some_(store_.size() > 0) {}

u64 OpTuner::next_number() {
  static std::atomic<u64> made = 0;
  return ++made;
}

OpTuner& OpTuner::of_process(const Backend& backend, i32 device) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<std::pair<const Backend*, i32>, std::unique_ptr<OpTuner>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<OpTuner>& tuner = all[{&backend, device}];
  if (!tuner) tuner = std::make_unique<OpTuner>(backend, device, tuned_folder(), shipped_folders());
  return *tuner;
}

std::shared_ptr<const TunedConfig> OpTuner::choose(const OpSpec& op, const std::byte* args,
                                                   const CallSite& site) {
  const Settings& settings = thread_settings();
  if (!op.configs || !may_choose()) return nullptr;
  struct Plan {
    bool is_empty = true;  // a choice needs no addresses
    std::shared_ptr<const TunedConfig> choice;
  };
  static thread_local CallCache<Plan> cache;
  // Other settings, and choices that were made since, are other places.
  u64 place = changes_ * 2 + u64(settings.policy == Policy::kPickBest);
  for (const u64 fact : {u64(site.device + 1), u64(site.threads), u64(settings.max_configs),
                         u64(settings.allow_reorder), number_})
    place = place * 0x9e3779b97f4a7c15u + fact;
  return cache
      .find(op, args, nullptr, place,
            [&](const CallLayout&) {
              return Plan{true, find(op, args, site, settings)};
            })
      .choice;
}

std::shared_ptr<const TunedConfig> OpTuner::find(const OpSpec& op, const std::byte* args,
                                                 const CallSite& site, const Settings& settings) {
  const CheckedCall call = check_call(op, args);
  if (call.is_empty) return nullptr;
  std::optional<KernelTarget> kernels;
  if (op.kernel) kernels = backend_.op_calls().kernels(site);
  std::vector<OpConfig> candidates =
      configs_of(op, call.args.data(), {.gpu = on_gpu_, .kernels = kernels ? &*kernels : nullptr});
  if (!settings.allow_reorder)
    std::erase_if(candidates, [](const OpConfig& config) { return config.reorders(); });
  if (settings.policy == Policy::kPickBest && settings.max_configs > 0)
    candidates.resize(std::min(candidates.size(), size_t(settings.max_configs)));
  if (candidates.size() < 2) return nullptr;
  const Key key = key_of_call(op, call.args.data(), site), asked = key_for(key, settings);
  if (settings.policy == Policy::kPickAny) {
    const std::optional<Record> known = store_.find(asked);
    if (!known || !known->config || std::ranges::find(candidates, *known->config) == candidates.end())
      return nullptr;
    return std::make_shared<TunedConfig>(TunedConfig{*known->config, known->configs, known->ns, {}});
  }
  const std::lock_guard lock(search_);
  const auto chosen = [&](const OpConfig& config, double ns) {
    return std::make_shared<TunedConfig>(TunedConfig{config, u32(candidates.size()), ns, {}});
  };
  if (const auto known = store_.find(asked);
      known && known->answers(settings.policy, candidates.size()) &&
      std::ranges::find(candidates, *known->config) != candidates.end())
    return chosen(*known->config, known->ns);
  backend_.op_calls().wait(site);  // the inputs are there
  CallWork work(op, call.args, site, backend_.op_calls(), space_);
  const Choice choice = tune::choose(store_, key, candidates, settings, work.work());
  knows_some_ = true, ++changes_;
  const auto made = chosen(choice.config, choice.ns);
  made->tried = choice.tried;
  return made;
}

}  // namespace heddle::tune
