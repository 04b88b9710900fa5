// heddle eval: computes the perplexity of a text, and how another model's choices differ on it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "apps/heddle/support/progress.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/text/logits_processors.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

struct EvalFlags {
  EngineFlags engine;
  std::string text, compare;
  i32 window = 0, stride = 0;
  bool json = false;
};

// One window of the text: it reads tokens [begin, end) and scores those from `target` on.
struct Window {
  size_t begin, target, end;
};

// Cuts a text as transformers' documentation does ("Perplexity of fixed-length models").
std::vector<Window> windows_of(size_t tokens, size_t window, size_t stride) {
  std::vector<Window> windows;
  for (size_t begin = 0, scored = 0; scored < tokens; begin += stride) {
    const size_t end = std::min(begin + window, tokens);
    windows.push_back({begin, scored, end});
    scored = end;
  }
  return windows;
}

// Sums over positions, in nats.
struct Sums {
  double loss = 0;        // with the documentation's weights of windows
  size_t tokens = 0;      // scored
  size_t weight = 0;      // sum of the weights in `loss`
  double divergence = 0;  // divergence of the other model's distribution from the first one's
  size_t agreed = 0, compared = 0;
};

class Eval {
 public:
  explicit Eval(const EvalFlags& flags) : flags_(flags) {
    const std::string& model = flags.engine.model;
    require_model_folder(model);
    if (!flags.compare.empty()) require_model_folder(flags.compare);
    const ModelInfo info = open_model(model, flags.engine.adapter)->info();
    const std::string text = read_file(flags.text);
    require_utf8(text, flags.text);
    tokens_ = Tokenizer::load(model).encode(text, true);
    if (tokens_.size() < 2)
      fail(ErrorCode::kIo, "[{}] has {} tokens; at least 2 are needed", flags.text, tokens_.size());
    limit_ = info.max_positions, usual_ = info.default_positions();
    if (!flags.compare.empty()) compare_with(info, text);
    window_ = flags.window > 0 ? flags.window : std::min(usual_, 8192);
    require(window_ >= 2 && window_ <= limit_, "[eval] --window is {}; must be 2 to {}, what the model holds",
            window_, limit_);
    stride_ = flags.stride != 0 ? flags.stride : std::min(window_, 512);
    require(stride_ >= 1 && stride_ <= window_, "[eval] --stride is {}; must be 1 to {}, the window", stride_,
            window_);
    for (const std::string& folder : {model, flags.compare}) {
      if (folder.empty()) continue;
      EngineFlags engine = flags.engine;
      engine.model = folder;
      if (!engines_.empty()) engine.adapter = "";  // it is the first model's
      EngineOptions options = engine.options();
      options.max_context = window_;
      options.all_logits = true;
      options.kv_dtype = DType::kF32;  // a long window adds no rounding
      engines_.push_back(load_engine(engine, options));
    }
  }

  void run() {
    const Stopwatch watch;
    const auto windows = windows_of(tokens_.size(), size_t(window_), size_t(stride_));
    ProgressLine progress;
    for (const Window& window : windows) {
      score(window);
      if (interrupted()) return;
      progress.show(fmt::format("{} of {} tokens", window.end, tokens_.size()));
    }
    progress.clear();
    report(windows.size(), watch.seconds());
  }

 private:
  // Refuses a model with other tokens.
  void compare_with(const ModelInfo& info, const std::string& text) {
    const ModelInfo other = open_model(flags_.compare)->info();
    require(other.vocab == info.vocab, "[eval] {} knows {} tokens and {} knows {}; they cannot be compared",
            flags_.engine.model, info.vocab, flags_.compare, other.vocab);
    require(Tokenizer::load(flags_.compare).encode(text, true) == tokens_,
            "[eval] {} and {} cut the text into other tokens; they cannot be compared", flags_.engine.model,
            flags_.compare);
    limit_ = std::min(limit_, other.max_positions), usual_ = std::min(usual_, other.default_positions());
  }

  // Computes logits only for rows that predict a scored token; the last token predicts none.
  void score(const Window& window) {
    std::vector<SequenceId> sequences;
    for (const auto& engine : engines_) sequences.push_back(engine->open({}));
    const size_t first = std::max(window.target, window.begin + 1) - 1;
    const double before = loss_;
    for (size_t at = window.begin; at + 1 < window.end;) {
      const bool wanted = at >= first;
      const size_t stop = std::min(wanted ? window.end - 1 : first, at + kRows);
      std::vector<StepResult> results;
      for (size_t e = 0; e < engines_.size(); ++e) {
        const StepRequest request{sequences[e], std::span(tokens_).subspan(at, stop - at), wanted};
        results.push_back(engines_[e]->step(std::span(&request, 1)));
      }
      if (wanted) add_rows(results, at, stop);
      at = stop;
    }
    for (size_t e = 0; e < engines_.size(); ++e) engines_[e]->close(sequences[e]);
    // The documentation counts one token less than a window scores, and weights its mean by that count.
    const size_t scored = window.end - 1 - first, weight = window.end - window.target - 1;
    if (scored == 0) return;
    sums_.loss += (loss_ - before) / double(scored) * double(weight);
    sums_.weight += weight;
    sums_.tokens += scored;
  }

  void add_rows(const std::vector<StepResult>& results, size_t begin, size_t end) {
    const size_t vocab = size_t(engines_[0]->info().vocab);
    const auto row = [&](size_t e, size_t at) {
      return std::span(results[e].logits).subspan((at - begin) * vocab, vocab);
    };
    for (size_t at = begin; at < end; ++at) {
      const auto logits = row(0, at);
      const double norm = log_sum_exp(logits);
      loss_ += norm - double(logits[size_t(tokens_[at + 1])]);
      if (results.size() > 1) compare(logits, norm, row(1, at));
    }
  }

  void compare(std::span<const float> logits, double norm, std::span<const float> other) {
    const double other_norm = log_sum_exp(other);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double ours = double(logits[i]) - norm, theirs = double(other[i]) - other_norm;
      sums_.divergence += std::exp(ours) * (ours - theirs);
    }
    sums_.agreed +=
        std::ranges::max_element(logits) - logits.begin() == std::ranges::max_element(other) - other.begin();
    ++sums_.compared;
  }

  void report(size_t windows, double seconds) const {
    const double loss = sums_.loss / double(sums_.weight), count = double(sums_.compared);
    Json out = Json::object({{"perplexity", std::exp(loss)},
                             {"loss", loss},
                             {"tokens", sums_.tokens},
                             {"windows", windows},
                             {"window", window_},
                             {"stride", stride_},
                             {"seconds", seconds}});
    if (engines_.size() > 1) {
      out["kl"] = sums_.divergence / count;
      out["top1_agreement"] = double(sums_.agreed) / count;
    }
    if (flags_.json) return print_json(out);
    print(fmt::format("perplexity  {:.4f}  ({:.5f} nats a token)\n", std::exp(loss), loss));
    if (engines_.size() > 1)
      print(fmt::format("KL          {:.6f} nats a token, of {} from {}\ntop 1       {:.2f} % agree\n",
                        sums_.divergence / count, flags_.compare, flags_.engine.model,
                        100 * double(sums_.agreed) / count));
    print(fmt::format("text        {} tokens scored in {} window{} of up to {}, stride {}; {:.1f} s\n",
                      sums_.tokens, windows, windows == 1 ? "" : "s", window_, stride_, seconds));
  }

  static constexpr size_t kRows = 256;  // rows per step, whose logits are in memory

  const EvalFlags& flags_;
  std::vector<i32> tokens_;
  std::vector<std::unique_ptr<Engine>> engines_;
  i32 limit_ = 0, usual_ = 0, window_ = 0, stride_ = 0;
  double loss_ = 0;
  Sums sums_;
};

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  Command command(app, "eval", "Measure the perplexity of a text, or compare two models on it");
  flags->engine.add_to(command);
  command.argument("--text", &flags->text, "file with the text, UTF-8",
                   {.required = true, .names = Names::kFile});
  command.argument("--compare", &flags->compare,
                   "folder of another model with the same tokens: mean KL divergence and top-1 agreement",
                   {.names = Names::kFolder});
  command.argument("--window", &flags->window, "tokens in a window; 0: the model's context, at most 8192");
  command.argument("--stride", &flags->stride,
                   "tokens from one window to the next; 0: 512, or the window if that is less");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Windows overlap: each token is scored once, after the tokens before it in its window. Windows and\n"
      "their weights follow transformers' documentation, \"Perplexity of fixed-length models\".\n"
      "Example: heddle eval models/storyteller --text story.txt --stride 256");
  command.action([flags] { Eval(*flags).run(); });
}

}  // namespace heddle
