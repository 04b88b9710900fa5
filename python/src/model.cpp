#include "python/src/model.h"

#include <map>
#include <memory>
#include <set>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/gguf.h"
#include "heddle/base/progress.h"
#include "heddle/engine/builtins.h"
#include "heddle/engine/default_executor.h"
#include "heddle/engine/program_tuner.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/gguf_config.h"
#include "heddle/model/hf/hub_cache.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/session/service.h"
#include "heddle/session/token_stream.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/generation_config.h"
#include "python/src/arguments.h"
#include "python/src/given_tensors.h"
#include "python/src/host_array.h"
#include "python/src/json_value.h"
#include "python/src/model_settings.h"
#include "python/src/teller.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// Where a model comes from: a folder, and what stands for files of it or for the folder.
struct Origin {
  std::string folder;                             // "": there is none
  std::optional<std::string> config, generation;  // texts of JSON
  std::optional<std::string> adapter;             // a folder
  std::shared_ptr<CallerTensors> tensors;         // null: the folder's
};

// A caller's wishes for an answer, besides its settings.
struct Terms {
  bool shares_pages = true, streams = false;
  i32 priority = 0;
  std::optional<double> seconds = {};  // from now to the deadline
};
using Tickets = std::vector<std::shared_ptr<Ticket>>;  // one call has them

class LoadedModel {
 public:
  LoadedModel(Origin origin, EngineOptions options, const std::set<std::string, std::less<>>& ignored,
              nb::object on_progress);
  ~LoadedModel();

  std::vector<i32> prompt_of(nb::handle given, const std::string& where) const;
  AskedPrompt rendered(nb::handle messages, const std::string& file, const nb::dict& variables);
  std::vector<i32> known_tokens(nb::handle given, const std::string& where) const {
    return tokens_with(given, vocab_, where);
  }
  AnswerSettings settings(const nb::dict& given, const std::string& where) const;
  void require_open() const;  // throws Error in a process that was forked
  bool is_forked() const { return ::getpid() != process_; }
  const Tokenizer& tokenizer() const {  // throws Error where there is none
    if (!tokenizer_)
      fail(ErrorCode::kIo,
           "{}; without a tokenizer prompts and answers are tokens (generate_tokens, stream, logits)",
           no_tokenizer_);
    return *tokenizer_;
  }
  // The tokenizer, or one to which all tokens have no text.
  const Tokenizer& decoder() const;
  Tickets submit(std::vector<Request> requests, bool apart);
  // Waits until the ticket has ended, or look() returns true. Throws what ended it early; what interrupts the waiting cancels
  // all of `call`.
  void wait_for(Ticket& ticket, const Tickets& call, std::function<bool()> look = {});
  i32 context() const { return context_; }
  i32 vocab() const { return vocab_; }
  void update_weights(std::shared_ptr<CallerTensors> tensors);
  void close();
  void cancel(Ticket& ticket) const {
    if (!is_forked()) ticket.cancel();
  }
  nb::dict stats() const;

 private:
  void load_tokenizer();
  std::unique_ptr<Engine> open(const Origin& origin, EngineOptions options,
                               const std::set<std::string, std::less<>>& ignored);

  const pid_t process_ = ::getpid();
  std::string folder_, device_;
  std::shared_ptr<const TensorModel> model_;
  std::vector<std::string> notes_;
  AnswerSettings settings_;
  i32 context_ = 0, vocab_ = 0;
  std::optional<Tokenizer> tokenizer_;
  std::string no_tokenizer_;  // why
  Teller teller_;
  std::map<std::string, ChatTemplate> templates_;  // by their files; "": the model's own
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Service> service_;
  bool closed_ = false;
};

LoadedModel::LoadedModel(Origin origin, EngineOptions options,
                         const std::set<std::string, std::less<>>& ignored, nb::object on_progress)
    : folder_(std::move(origin.folder)), teller_(std::move(on_progress)) {
  const nb::gil_scoped_release others_run;
  engine_ = open(origin, std::move(options), ignored);
  if (origin.tensors) origin.tensors->close();
  // An exception of Python crosses from the service's thread to those that wait.
  const auto tell = [this](const ::heddle::Progress& progress) {
    const nb::gil_scoped_acquire locked;
    try {
      teller_.tell(progress);
    } catch (const PythonError&) {
      throw nb::python_error();
    }
  };
  service_ = std::make_unique<Service>(*engine_, ServiceOptions{.on_progress = tell});
}

namespace {

// The text of a model's config.json.
std::string config_of(const std::string& folder) {
  return is_gguf(folder) ? gguf_config(Gguf(folder)) : read_file(folder + "/config.json");
}

}  // namespace

LoadedModel::~LoadedModel() {
  close();
  if (is_forked()) {  // their threads are in the other process
    [[maybe_unused]] Service* const service = service_.release();
    [[maybe_unused]] Engine* const engine = engine_.release();
  }
}

std::unique_ptr<Engine> LoadedModel::open(const Origin& origin, EngineOptions options,
                                          const std::set<std::string, std::less<>>& ignored) {
  if (!folder_.empty() && !origin.tensors) require_model_folder(folder_);
  const ProgressScope told([this](const ::heddle::Progress& progress) { teller_.tell(progress); });
  load_tokenizer();
  if (origin.generation)
    settings_ = settings_of(GenerationConfig::parse(*origin.generation, "generation_config", ignored));
  else if (!folder_.empty())
    settings_ = model_settings(folder_, ignored);
  options.progress = [](size_t, size_t) {
    if (is_interrupted()) throw PythonError{};
  };
  options.run.cancelled = [this] { return service_ && service_->ends_step(); };
  device_ = describe_choice(options.executor, options.device, false);
  const std::string adapter = origin.adapter.value_or("");
  if (origin.tensors)
    model_ = open_model(origin.config ? *origin.config : config_of(folder_), origin.tensors, adapter);
  else
    model_ = open_model(folder_, adapter);
  notes_ = model_->info().notes;
  if (const std::string tuned = take_tuned(*model_, options); !tuned.empty()) device_ += "; tuned: " + tuned;
  auto engine = std::make_unique<Engine>(model_, std::move(options));
  context_ = engine->max_context();
  for (const std::string& note : {context_note(engine->info(), context_), engine->weights_note()})
    if (!note.empty()) notes_.push_back(note);
  vocab_ = engine->info().vocab;
  drop_impossible_ends(settings_, vocab_);
  return engine;
}

void LoadedModel::load_tokenizer() {
  if (folder_.empty()) {
    no_tokenizer_ = "[tokenizer] none was given";
    return;
  }
  try {
    tokenizer_ = Tokenizer::load(folder_);
  } catch (const Error& error) {
    if (is_gguf(folder_)) throw;
    for (const char* file : {"/tokenizer.json", "/tekken.json", "/tokenizer.model"})
      if (path_exists(folder_ + file)) throw;
    no_tokenizer_ = error.what();
  }
}

const Tokenizer& LoadedModel::decoder() const {
  static const Tokenizer silent =
      Tokenizer::parse(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}})", "no tokenizer");
  return tokenizer_ ? *tokenizer_ : silent;
}

// The caller's tensors are read before it returns.
void LoadedModel::update_weights(std::shared_ptr<CallerTensors> tensors) {
  require_open();
  const nb::gil_scoped_release others_run;
  service_->update_weights(*model_->replacing(std::move(tensors)));
}

Tickets LoadedModel::submit(std::vector<Request> requests, bool apart) {
  require_open();
  return apart ? service_->submit_apart(std::move(requests)) : service_->submit(std::move(requests));
}

void LoadedModel::wait_for(Ticket& ticket, const Tickets& call, std::function<bool()> look) {
  require_open();
  bool seen = false, went_on = false;
  {
    const nb::gil_scoped_release others_run;
    const auto looks = [&] { return seen = look && look(); };
    went_on =
        ticket.wait({.look = look ? std::function<bool()>(looks) : nullptr, .interrupted = is_interrupted});
  }
  if (!went_on) {
    for (const auto& each : call) each->cancel();
    throw PythonError{};
  }
  if (seen || ticket.state() == TicketState::kFinished) return;
  require_open();
  if (ticket.state() == TicketState::kExpired)
    throw DeadlineExceeded("[model] the deadline has passed; what was not read of the answer is lost");
  require(ticket.state() == TicketState::kFailed, "[model] the answer was interrupted; ask again");
  try {
    std::rethrow_exception(ticket.error());
  } catch (const nb::python_error& error) {
    nb::python_error(error).restore();
    throw PythonError{};
  }
}

void LoadedModel::require_open() const {
  require(!closed_, "[model] it is closed; heddle.load opens it again");
  if (is_forked())
    fail(
        ErrorCode::kUnsupported,
        "[model] it was loaded before this process was forked, and its threads are in the other one; load it "
        "here");
}

void LoadedModel::close() {
  if (is_forked()) return;
  closed_ = true;
  std::unique_ptr<Engine> engine;
  {
    const nb::gil_scoped_release others_run;
    if (service_) service_->stop();
  }
  engine.swap(engine_);  // with the lock: others may close it too
  const nb::gil_scoped_release others_run;
  engine.reset();
}

std::string given_text(nb::handle given, const std::string& where) {
  require(PyUnicode_Check(given.ptr()), "[{}] {} is of type {}; must be a text", where,
          short_repr(given.ptr()), type_name(given.ptr()));
  return json_value(given.ptr(), where).as_string();
}

std::vector<i32> LoadedModel::prompt_of(nb::handle given, const std::string& where) const {
  std::vector<i32> tokens;
  if (PyUnicode_Check(given.ptr())) {
    const std::string prompt = given_text(given, where);
    const nb::gil_scoped_release others_run;
    tokens = tokenizer().encode(prompt, true);
  } else {
    tokens = tokens_with(given, vocab_, where, " and no text");
  }
  return tokens;
}

// Throws Error where a model with this context cannot continue the prompt.
void require_fit(const std::vector<i32>& prompt, const LoadedModel& model, const std::string& where) {
  require(!prompt.empty(), "[{}] the prompt has no tokens; give it some text", where);
  require(i64(prompt.size()) < model.context(),
          "[{}] the prompt has {} tokens; the context holds {}, of which one is for an answer "
          "(heddle.load(max_context=...) sets it, up to what the model allows)",
          where, prompt.size(), model.context());
  for (const i32 token : prompt)
    if (token >= model.vocab())
      fail(ErrorCode::kIo,
           "[{}] the tokenizer makes token {}; the model knows 0 to {}: it is another model's", where, token,
           model.vocab() - 1);
}

AskedPrompt LoadedModel::rendered(nb::handle messages, const std::string& file, const nb::dict& variables) {
  auto found = templates_.find(file);
  if (found == templates_.end()) {
    if (file.empty() && (folder_.empty() || !ChatTemplate::exists(folder_)))
      ChatTemplate::fail_without(folder_.empty() ? "the model" : folder_, "template=FILE");
    found = templates_.emplace(file, ChatTemplate::load(folder_, file)).first;
  }
  const Json extra = json_value(variables.ptr(), "chat");
  std::string made =
      found->second.render_json(json_value(messages.ptr(), "chat"), ChatOptions{.extra = &extra});
  return asked_turn(found->second, std::move(made), tokenizer());
}

AnswerSettings LoadedModel::settings(const nb::dict& given, const std::string& where) const {
  AnswerSettings made = settings_with(settings_, given, where);
  require_known_tokens(made, vocab_);
  return made;
}

nb::dict LoadedModel::stats() const {
  require_open();
  const ServiceStats now = service_->stats();
  const BatchStats& steps = now.batch;
  nb::dict made;
  nb::list notes;
  for (const std::string& note : notes_) notes.append(text(note));
  made["device"] = text(device_);
  made["notes"] = notes;
  made["vocab"] = vocab_;
  made["max_context"] = context_;
  made["max_sequences"] = engine_->max_sequences();
  made["weight_bytes"] = engine_->weight_bytes();
  made["kv_bytes"] = engine_->kv_bytes();
  made["steps"] = steps.steps;
  made["launches"] = steps.launches;
  made["prompt_tokens"] = steps.prompt_tokens;
  made["shared_tokens"] = steps.shared_tokens;
  made["new_tokens"] = steps.new_tokens;
  made["most_sequences"] = steps.most_sequences;
  made["put_off"] = steps.put_off;
  made["waiting"] = now.waiting;
  made["running"] = now.running;
  made["free_pages"] = now.free_pages;
  return made;
}

// An answer as its caller holds it. Letting it go ends it.
class RunningAnswer {
 public:
  RunningAnswer(std::shared_ptr<LoadedModel> model, std::shared_ptr<TokenStream> answer,
                std::shared_ptr<const Tickets> call, size_t number)
      : model_(std::move(model)),
        answer_(std::move(answer)),
        call_(std::move(call)),
        ticket_(*(*call_)[number]) {}
  RunningAnswer(const RunningAnswer&) = delete;
  RunningAnswer& operator=(const RunningAnswer&) = delete;
  ~RunningAnswer() { model_->cancel(ticket_); }

  nb::object next();
  nb::str finish();

 private:
  std::shared_ptr<LoadedModel> model_;
  std::shared_ptr<TokenStream> answer_;
  std::shared_ptr<const Tickets> call_;
  Ticket& ticket_;
};

nb::object logprobs_object(const std::optional<TokenLogprobs>& logprobs) {
  if (!logprobs) return nb::none();
  nb::list likeliest;
  for (const auto& [id, logprob] : logprobs->likeliest) likeliest.append(nb::make_tuple(id, logprob));
  return nb::make_tuple(logprobs->chosen, nb::tuple(likeliest));
}

// (text, id, index, logprobs or None, reason or None, reasoning), or None after the last one.
nb::object RunningAnswer::next() {
  model_->require_open();
  std::optional<AnswerToken> token;
  const auto take = [&] { return (token = answer_->next()).has_value(); };
  if (!ticket_.look(take)) model_->wait_for(ticket_, *call_, take);
  if (!token) return nb::none();
  nb::object reason = nb::none();
  if (!token->reason.empty()) reason = text(token->reason);
  return nb::make_tuple(text(token->text), token->id, token->index, logprobs_object(token->logprobs), reason,
                        text(token->reasoning));
}

// Waits for the whole text.
nb::str RunningAnswer::finish() {
  (void)model_->tokenizer();
  model_->wait_for(ticket_, *call_);
  return text(answer_->text());
}

// Logits as Python holds them: [tokens, vocab].
struct Logits {
  SharedFloats numbers;
  size_t vocab;
};

// Returns the logits of all prompts, which share steps.
nb::list logits_of(const std::shared_ptr<LoadedModel>& model, const nb::list& prompts) {
  model->require_open();
  std::vector<std::shared_ptr<GivenTokens>> jobs;
  std::vector<Request> requests;
  for (const nb::handle given : prompts) {
    std::vector<i32> tokens = model->known_tokens(given, "logits");
    require(!tokens.empty(), "[logits] there are no tokens; give some");
    require(i64(tokens.size()) <= model->context(), "[logits] there are {} tokens; the context holds {}",
            tokens.size(), model->context());
    jobs.push_back(std::make_shared<GivenTokens>(std::move(tokens), model->vocab()));
    requests.push_back({.job = jobs.back()});
  }
  const Tickets call = model->submit(std::move(requests), true);
  struct Cancel {
    const LoadedModel& model;
    const Tickets& call;
    ~Cancel() {
      for (const auto& ticket : call) model.cancel(*ticket);
    }
  } const cancel{*model, call};
  nb::list made;
  for (size_t i = 0; i < jobs.size(); ++i) {
    model->wait_for(*call[i], call);
    made.append(nb::cast(std::make_unique<Logits>(
        Logits{std::make_shared<std::vector<float>>(std::move(jobs[i]->logits)), size_t(model->vocab())})));
  }
  return made;
}

std::optional<std::string> optional_text(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  return text_of(given.ptr());
}

// `parts`: what stands for files of the folder: texts `config` and `generation`, and pairs `tensors`; and the folder `adapter`.
std::shared_ptr<LoadedModel> load_model(nb::handle folder, nb::handle device, const nb::dict& options,
                                        nb::handle ignored, nb::handle on_progress, const nb::dict& parts) {
  register_builtins();
  std::set<std::string, std::less<>> names;
  for (const nb::handle name : nb::list(ignored)) names.insert(text_of(name.ptr()));
  EngineOptions engine = options_with(text_of(device.ptr()), options);
  Kept kept;
  Origin origin{.folder = text_of(folder.ptr())};
  for (const auto& [name, part] : {std::pair("config", &origin.config),
                                   {"generation", &origin.generation},
                                   {"adapter", &origin.adapter}})
    if (parts.contains(name)) *part = optional_text(parts[name]);
  if (parts.contains("tensors")) origin.tensors = given_tensors(parts["tensors"], "load", kept);
  return std::make_shared<LoadedModel>(std::move(origin), std::move(engine), names, nb::borrow(on_progress));
}

// Tokens of a stream that wait for its reader, at most. A launch for a lone one makes as many; it costs a GPU 50 us.
constexpr size_t kStreamRoom = 16;

// The answers to all prompts, as objects of Python. Without shared pages no other call may change how they are rounded.
nb::list start(const std::shared_ptr<LoadedModel>& model, const std::vector<AskedPrompt>& prompts,
               const nb::dict& given, const Terms& terms, const std::string& where) {
  AnswerSettings settings = model->settings(given, where);
  if (!settings.stop.empty()) (void)model->tokenizer();
  const bool has_seed = given.contains("seed") && !given["seed"].is_none();
  const u64 seed = settings.sampling.seed;
  std::map<std::vector<i32>, u64> asked;  // how often each prompt was given so far
  const TokenStreamOptions options{
      .shares_pages = terms.shares_pages, .room = terms.streams ? kStreamRoom : 0, .lazy = terms.streams};
  std::optional<ServiceTime> deadline;
  if (terms.seconds)
    deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<ServiceTime::duration>(
                                                      std::chrono::duration<double>(*terms.seconds));
  std::vector<std::shared_ptr<TokenStream>> jobs;
  std::vector<Request> requests;
  for (const AskedPrompt& prompt : prompts) {
    require_fit(prompt.tokens, *model, where);
    // Answers to one prompt differ, as those of the command's --n do.
    const u64 before = asked[prompt.tokens]++;
    settings.sampling.seed = has_seed || jobs.empty() ? seed + before : random_seed();
    jobs.push_back(std::make_shared<TokenStream>(settings, prompt, model->decoder(), options));
    requests.push_back({.job = jobs.back(), .priority = terms.priority, .deadline = deadline});
  }
  const auto call = std::make_shared<const Tickets>(model->submit(std::move(requests), !terms.shares_pages));
  nb::list answers;
  for (size_t i = 0; i < jobs.size(); ++i)
    answers.append(nb::cast(std::make_unique<RunningAnswer>(model, jobs[i], call, i)));
  return answers;
}

// (shares pages, streams, priority, seconds or None)
Terms terms_of(const nb::tuple& given) {
  return {.shares_pages = nb::cast<bool>(given[0]),
          .streams = nb::cast<bool>(given[1]),
          .priority = nb::cast<i32>(given[2]),
          .seconds = given[3].is_none() ? std::nullopt : std::optional(nb::cast<double>(given[3]))};
}

nb::list list_of(const std::vector<i32>& tokens) {
  nb::list made;
  for (const i32 token : tokens) made.append(token);
  return made;
}

}  // namespace

void add_model(nb::module_& module) {
  using Shared = std::shared_ptr<LoadedModel>;
  module.def("load_model", &load_model, nb::arg("folder"), nb::arg("device"), nb::arg("options"),
             nb::arg("ignored"), nb::arg("on_progress").none(), nb::arg("parts"));
  module.def("find_model", [](nb::handle folder) {
    const FoundModel found = find_model(text_of(folder.ptr()));
    return nb::make_tuple(nb::str(found.path.c_str()), nb::str(found.said.c_str()));
  });
  module.def("describe_settings", &describe_settings);
  module.def("describe_options", &describe_options);
  nb::class_<RunningAnswer>(module, "RunningAnswer")
      .def("next", &RunningAnswer::next)
      .def("finish", &RunningAnswer::finish);
  nb::class_<Logits>(module, "Logits")
      .def_prop_ro(
          "shape",
          [](const Logits& self) { return nb::make_tuple(self.numbers->size() / self.vocab, self.vocab); })
      .def("capsule", [](const Logits& self, bool versioned) {
        return nb::steal(dlpack_capsule(self.numbers, self.vocab, versioned));
      });
  nb::class_<LoadedModel>(module, "LoadedModel")
      .def("start",
           [](const Shared& self, const nb::list& given, const nb::dict& settings, const nb::tuple& terms,
              nb::handle where) {
             self->require_open();
             const std::string name = text_of(where.ptr());
             std::vector<AskedPrompt> prompts;
             for (const nb::handle prompt : given) prompts.push_back({self->prompt_of(prompt, name)});
             return start(self, prompts, settings, terms_of(terms), name);
           })
      .def(
          "start_chat",
          [](const Shared& self, nb::handle messages, nb::handle file, const nb::dict& variables,
             const nb::dict& settings, const nb::tuple& terms) {
            self->require_open();
            const auto prompt = self->rendered(messages, text_of(file.ptr()), variables);
            return start(self, {prompt}, settings, terms_of(terms), "chat");
          },
          nb::arg("messages").none(), nb::arg("file"), nb::arg("variables"), nb::arg("settings"),
          nb::arg("terms"))
      .def("logits", &logits_of)
      .def(
          "tokenize",
          [](const LoadedModel& self, nb::handle given, bool special) {
            self.require_open();
            return list_of(self.tokenizer().encode(given_text(given, "tokenize"), special));
          },
          nb::arg("text").none(), nb::arg("special"))
      .def(
          "detokenize",
          [](const LoadedModel& self, nb::handle tokens, bool skip_special) {
            self.require_open();
            return text(self.tokenizer().decode(self.known_tokens(tokens, "detokenize"), skip_special));
          },
          nb::arg("tokens").none(), nb::arg("skip_special"))
      .def("update_weights",
           [](const Shared& self, nb::handle pairs) {
             Kept kept;
             self->update_weights(given_tensors(pairs, "update_weights", kept));
           })
      .def("stats", &LoadedModel::stats)
      .def("close", &LoadedModel::close);
}

}  // namespace heddle::python
