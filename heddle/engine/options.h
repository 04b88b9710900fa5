// The options of an engine. Flags, what artefacts keep, messages and keywords of other languages derive from
// EngineOptions::visit: a new option is a field and a line there.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "heddle/engine/planner.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {

struct Artefact;
struct MemoryNeed;

// Says what an option means where the programs were made ahead of time (ir/executor/artefact.h).
enum class Kept : u8 {
  kNot,    // nothing: it decides no program
  kTaken,  // what the programs have, whatever is asked for
  kSame,   // the programs must have what is asked for; 0 and an empty name ask for nothing
  kExact,  // the programs must have it
  kRoom,   // the programs must have at least what is asked for
};

// Describes an option besides its name and value.
struct Option {
  std::string doc;
  std::string zero = {};    // what 0, or an empty name, stands for
  i32 least = 0, most = 0;  // a number's range; most = 0: any, or what the model allows
  Kept kept = Kept::kNot;
  bool flag = false;                   // commands have a flag for it
  bool common = false;                 // short help shows the flag
  std::string (*choices)() = nullptr;  // the names that it may have

  // "threads; 0: all cores this process may use"
  std::string help() const;
};

std::string executor_names();  // "threads, reference"
std::string scheduler_names();
std::string weight_kinds();  // "codes, floats"

constexpr i32 kDefaultContext = 8192;  // positions

struct EngineOptions {
  std::string executor = "threads";
  i32 device = 0;         // ordinal of the GPU; a CPU is device 0
  std::string scheduler;  // empty: kDefaultScheduler
  std::string config;     // configurations of ops: "linear:columns=64,stages=4;attention:stages=3,step=64"
  i32 workers = 0;        // workers of the programs; 0: one for each thread
  i32 threads = 0;        // 0: one for each core this process may use
  i32 max_context = 0;    // positions a sequence may have; 0: what the model allows, at most kDefaultContext
  i32 max_sequences = 16;
  i32 page_size = 64;
  i32 kv_pages = 0;               // 0: as many as all sequences can fill
  AttentionSplits splits;         // 0: as the target has it
  std::optional<DType> kv_dtype;  // the weights' where unset
  std::string weights;            // "codes" or "floats"; empty: floats
  PassOptions passes;
  bool keep_buffers = false;
  bool all_logits = false;  // logits of every row instead of one for each sequence
  // Programs are laid out for this target, where that is not this machine's threads: they run them all the same.
  std::optional<Target> target;
  std::optional<CostModel> costs;  // by which the scheduler decides
  ExecutorOptions run{.knowledge = Knowledge::kSizes};
  // Programs that were made ahead of time; all that decides programs is then as it says (take_settings).
  std::shared_ptr<const Artefact> artefact;
  std::function<void(const MemoryNeed&)> on_need;  // called before anything is loaded
  LoadProgress progress;

  // Calls v(name, field, Option) for each field; those of `splits` and `passes` one by one.
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("executor", s.executor,
      Option{.doc = "what runs the program", .flag = true, .common = true, .choices = executor_names});
    v("device", s.device, Option{.doc = "which GPU, as heddle env numbers them; a CPU is device 0"});
    v("scheduler", s.scheduler,
      Option{.doc = "how tiles are ordered",
             .zero = kDefaultScheduler,
             .kept = Kept::kSame,
             .flag = true,
             .choices = scheduler_names});
    v("config", s.config,
      Option{.doc = "configurations of ops, such as \"linear:columns=64,stages=3;OP:...\"",
             .zero = "their defaults",
             .kept = Kept::kSame,
             .flag = true});
    v("workers", s.workers,
      Option{.doc = "workers of the program",
             .zero = "one for each thread, or each SM of a GPU",
             .most = 4096,
             .kept = Kept::kSame,
             .flag = true});
    v("threads", s.threads,
      Option{.doc = "threads",
             .zero = "all cores this process may use",
             .most = 1024,
             .flag = true,
             .common = true});
    v("max_context", s.max_context,
      Option{.doc = "positions of a sequence",
             .zero = "the model's, at most " + std::to_string(kDefaultContext),
             .kept = Kept::kRoom,
             .flag = true});
    v("max_sequences", s.max_sequences,
      Option{.doc = "sequences at once, at most", .least = 1, .most = 512, .kept = Kept::kRoom});
    v("page_size", s.page_size,
      Option{
          .doc = "positions of a page of the KV cache", .least = 1, .most = 1 << 16, .kept = Kept::kTaken});
    v("kv_pages", s.kv_pages,
      Option{.doc = "pages of the KV cache, for which sequences wait",
             .zero = "as many as all sequences can fill",
             .kept = Kept::kSame,
             .flag = true});
    v("split_unit", s.splits.unit,
      Option{.doc = "attention: positions of which a part is a multiple",
             .zero = "as the device has it",
             .most = 1 << 16,
             .kept = Kept::kSame,
             .flag = true});
    v("max_splits", s.splits.most,
      Option{.doc = "attention: parts at most",
             .zero = "as the device has it",
             .most = 1024,
             .kept = Kept::kSame,
             .flag = true});
    v("kv_dtype", s.kv_dtype, Option{.doc = "of keys and values in the cache", .kept = Kept::kExact});
    v("weights", s.weights,
      Option{.doc = "how weights lie in memory that a checkpoint stores in codes (fp8, int4)",
             .zero = "floats, which multiply faster; codes take half the memory or less",
             .kept = Kept::kSame,
             .flag = true,
             .choices = weight_kinds});
    v("all_logits", s.all_logits,
      Option{.doc = "logits of every row instead of the last of each sequence", .kept = Kept::kExact});
    v("keep_buffers", s.keep_buffers,
      Option{.doc = "no two activations share memory, so that each can be read"});
    PassOptions::visit(s.passes, [&](const char* name, auto& field, const char* doc) {
      v(name, field, Option{.doc = doc, .kept = Kept::kTaken});
    });
    v("target", s.target, Option{.doc = "what the programs are laid out for"});
    v("costs", s.costs, Option{.doc = "costs by which the scheduler decides"});
    v("run", s.run, Option{.doc = "how the executor runs programs"});
    v("artefact", s.artefact, Option{.doc = "programs that were made ahead of time"});
    v("on_need", s.on_need,
      Option{.doc = "called with the memory that is needed, before anything is loaded"});
    v("progress", s.progress, Option{.doc = "called while weights are loaded"});
  }
};

// Values that can be written as text, so that flags and files can hold them.
template <class T>
concept PlainOption = std::same_as<T, i32> || std::same_as<T, bool> || std::same_as<T, std::string> ||
                      std::same_as<T, std::optional<DType>>;

std::string option_text(i32 value);
std::string option_text(bool value);
std::string option_text(const std::string& value);
std::string option_text(const std::optional<DType>& value);
// The inverse; false where the text is none of these.
bool read_option(const std::string& text, i32& value);
bool read_option(const std::string& text, bool& value);
bool read_option(const std::string& text, std::string& value);
bool read_option(const std::string& text, std::optional<DType>& value);

// visit(), but for what is no plain value.
template <class Self, class V>
void visit_plain(Self& options, V&& v) {
  EngineOptions::visit(options, [&](const char* name, auto& field, const Option& option) {
    if constexpr (PlainOption<std::remove_cvref_t<decltype(field)>>) v(name, field, option);
  });
}

// Reads the option `config`. Throws Error where it is malformed, or names no op.
ChosenConfigs read_configs(const std::string& text);
// Throws Error(kInvalidArgument) that names the option, its value and what it may be.
void validate(const EngineOptions& options);
// The target of the programs of an engine with these options.
Target target_of(const EngineOptions& options);
// Puts what a model and a target decide where nothing was asked for. Throws Error where the model does not allow what
// was.
void complete(const ModelInfo& model, EngineOptions& options);
// Says that this context changes what positions mean; "" where it does not.
std::string context_note(const ModelInfo& model, i32 max_context);
// The planner of an engine with these options. Checks the options and fills them in. Needs no weights.
Planner make_planner(std::shared_ptr<const Model> model, EngineOptions& options);

}  // namespace heddle
