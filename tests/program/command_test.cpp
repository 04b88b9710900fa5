// The commands that show and prove programs, as people use them.
#include "tests/support/command.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

const std::string kModel = HEDDLE_SOURCE_DIR "/tests/goldens/models/llama3-tiny";

TEST(Command, InspectShowsModelGraphAndProgram) {
  expect_words(
      output({"inspect", kModel, "--workers", "3"}),
      {"family    llama: 2 layers", "parameters", "KV cache", "on 3 workers", "counted", "counters",
       "rms_norm + linear + rope_rows + kv_append", "programs for steps of up to so many rows", " 512 "});
  expect_words(output({"inspect", kModel, "--all"}), {"layers.1.qkv absorbs layers.1.input_norm"});
  const std::string graph = output({"inspect", kModel, "--graph"});
  expect_words(graph, {"layers.0.qkv", "rms_norm(", "* linear(", "kv.0.keys"});
  const std::string plain = output({"inspect", kModel, "--graph", "--no-fuse"});
  EXPECT_EQ(plain.find("* linear("), std::string::npos) << "nothing is fused";
  const std::string program = output({"inspect", kModel, "--program", "--rows", "8", "--workers", "3"});
  expect_words(program, {"step: 8 rows", "worker 1\n", "and 1 more workers", "wait", "signal"});
  EXPECT_EQ(output({"inspect", kModel, "--program", "--all", "--workers", "3"}).find("more workers"),
            std::string::npos);
}

TEST(Command, SuitesAndToolsOfOpsAreThePythonPackages) {
  Scratch scratch;
  const std::string python = scratch.path("python");
  replace(python, "#!/bin/sh\nshift 2\necho \"$@\"\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Variable ours("HEDDLE_PYTHON", python);
  EXPECT_EQ(output({"bench", "--suite", "smoke", "--out", "a b.json"}),
            "heddle.bench --suite smoke --out a b.json\n");
  EXPECT_EQ(output({"profile", "trace", "--", "softmax"}), "heddle.profile trace -- softmax\n");
  EXPECT_EQ(output({"check", "softmax", "copy"}), "heddle.check softmax copy\n");
  EXPECT_EQ(output({"check", "all"}), "heddle.check all\n");
  expect_words(run_program({.args = {"check", "sofmax"}}).err, {"sofmax"});
  const Variable none("HEDDLE_PYTHON", "/nowhere/python");
  const Outcome missing = run_program({.args = {"bench", "--suite=smoke"}});
  EXPECT_EQ(missing.code, 2);
  expect_words(missing.err, {"[bench] /nowhere/python does not start", "HEDDLE_PYTHON names"});
  expect_words(run_program({.args = {"profile", "/nowhere/model"}}).err, {"[/nowhere/model]"});
}

TEST(Command, InspectShowsWhereSettingsOfTheTokenizerComeFrom) {
  Scratch scratch;
  const std::string model = scratch.link_model(kStoryteller, "model");
  replace(model + "/tokenizer_config.json",
          "{\"tokenizer_class\": \"LlamaTokenizer\", \"eos_token\": {\"content\": \"<|end_of_text|>\"}, "
          "\"chat_template\": \"" +
              std::string(500, 'x') + "\"}");
  replace(model + "/special_tokens_map.json", "{\"eos_token\": \"<|begin_of_text|>\"}");
  const std::string text = output({"inspect", model});
  expect_words(text,
               {"tokenizer_class              \"LlamaTokenizer\"         tokenizer_config.json",
                "eos_token                    \"<|begin_of_text|>\"      special_tokens_map.json", "xxx..."});
  EXPECT_LT(text.find("generation"), text.find("\ntokenizer"));
  replace(model + "/tokenizer_config.json", "{");
  expect_words(output({"inspect", model}), {"tokenizer\n  [", "tokenizer_config.json"});
}

// Longrope: the context chooses the frequencies of all texts, so a long one is noted.
TEST(Command, SaysWhatALongContextChanges) {
  const std::string model = HEDDLE_SOURCE_DIR "/tests/goldens/models/phi3-long";
  expect_words(in_long_lines(output({"inspect", model})),
               {"up to 10 positions has short_factor", "the context of 10 here is a short one"});
  expect_words(in_long_lines(output({"inspect", model, "--max-context", "64"})),
               {"the context of 64 here is a longer one"});
  const Outcome outcome =
      run_program({.args = {"logits", model, "--tokens", "1,2", "--max-context", "11", "--out",
                            testing::TempDir() + "heddle_long_context.safetensors"}});
  EXPECT_EQ(outcome.code, 0);
  expect_words(outcome.err, {"note: [engine] max_context = 11: rope_type longrope: a context of up to 10"});
}

TEST(Command, SavedProgramIsTheSameAndProved) {
  Scratch scratch;
  const std::string file = scratch.path("p.heddle");
  for (const std::string rows : {"1", "512"}) {
    output({"inspect", kModel, "--rows", rows, "--workers", "2", "--save", file});
    expect_words(output({"check", file}), {"llama T=" + rows, "2 workers", "proved"});
    EXPECT_EQ(output({"inspect", file, "--program", "--all"}),
              output({"inspect", kModel, "--rows", rows, "--workers", "2", "--program", "--all"}));
  }
  expect_words(output({"check", kModel, "--workers", "5"}), {"T=1:", "T=8:", "T=64:", "T=512:", "proved"});
}

TEST(Command, BenchMeasuresAndKeepsResults) {
  Scratch scratch;
  const std::string file = scratch.path("results.json");
  const std::string text =
      output({"bench", kModel, "--positions", "0,9", "--prefill", "70", "--rounds", "2", "--steps", "3",
              "--threads", "2", "--split-unit", "64", "--commit", "abc", "--out", file});
  expect_words(text, {"read bandwidth", "program of 1 rows: built and proved",
                      "program of 512 rows: built and proved", "prefill of 70 tokens, 2 threads, the first",
                      "decode at position 0", "decode at position 9, 2 threads", "every weight once"});
  expect_words(read_file(file), {"\"commit\": \"abc\"", "\"unit\": \"tokens/s\"",
                                 "heddle bench llama3-tiny --split-unit 64 --positions 0,9 --prefill 70 ",
                                 "\"ceiling\": null", "\"ratio\": null"});
  EXPECT_NE(output({"bench", kModel, "--positions", "0", "--prefill", "0", "--rounds", "1", "--steps", "3",
                    "--temperature", "0.8", "--top-p", "0.9"})
                .find("3 tokens a call; temperature 0.8, top-p 0.9"),
            std::string::npos);
  EXPECT_NE(run_program({.args = {"bench", kModel, "--rounds", "0"}}).code, 0);
  EXPECT_NE(run_program({.args = {"bench", kModel, "--positions", "-1"}}).code, 0);
}

TEST(Command, ProfileShowsWhereAStepGoes) {
  const std::string text = output({"profile", kModel, "--position", "9", "--steps", "3", "--workers", "4"});
  expect_words(text, {"3 of them, 4 workers", "late", "starved", "attention", "rms_norm linear", "\nall "});
  EXPECT_NE(run_program({.args = {"profile", kModel, "--steps", "0"}}).code, 0);
  expect_words(output({"profile", kModel, "--prefill", "20", "--workers", "2"}),
               {"1 of them, 2 workers", "attention", "\nsample "});  // the last op: no event was lost
  EXPECT_NE(run_program({.args = {"profile", kModel, "--prefill", "-1"}}).code, 0);
  expect_words(output({"profile", kModel, "--position", "3", "--executor", "reference", "--workers", "3"}),
               {"8 of them, 3 workers on 1 units", "GB/s", "idle by cause", "critical path: "});
}

TEST(Command, TraceSaysWhatProfileSaidAndConverts) {
  Scratch scratch;
  const std::string file = scratch.path("run.nanotrace"), page = scratch.path("run.html");
  const std::string said =
      output({"profile", kModel, "--position", "9", "--steps", "2", "--workers", "4", "--out", file});
  EXPECT_EQ(output({"trace", file, "--out", page}), said);
  EXPECT_EQ(output({"trace", page, "--out", scratch.path("again.nanotrace")}), said);
  EXPECT_EQ(read_file(scratch.path("again.nanotrace")), read_file(file));
  output({"trace", file, "--out", scratch.path("run.perfetto-trace")});
  expect_words(read_file(scratch.path("run.perfetto-trace")), {"worker 3 on ", "layers.1.attention"});

  output({"trace", file, "--out", scratch.path("run.json")});
  expect_words(read_file(scratch.path("run.json")),
               {"\"traceEvents\"", "worker 3 on ", "layers.1.attention"});

  const Outcome ending = run_program({.args = {"profile", kModel, "--out", scratch.path("run.txt")}});
  EXPECT_EQ(ending.code, 2);
  expect_words(ending.err, {"run.txt", ".nanotrace, .html, .json, .perfetto-trace or .perfetto"});
  const Outcome other = run_program({.args = {"trace", kModel + "/config.json"}});
  EXPECT_EQ(other.code, 1);
  expect_words(other.err, {"config.json", "not a .nanotrace", "another kind of file"});
}

TEST(Command, DiffProgramsSaysWhatDiffers) {
  Scratch scratch;
  const auto save = [&](const std::string& name, std::vector<std::string> flags) {
    std::string path = scratch.path(name);
    flags.insert(flags.begin(), {"inspect", kModel, "--save", path});
    output(flags);
    return path;
  };
  const std::string a = save("a.heddle", {"--workers", "3"}), again = save("b.heddle", {"--workers", "3"});
  EXPECT_EQ(read_file(a), read_file(again)) << "the same input makes the same bytes";
  EXPECT_EQ(output({"diff-programs", a, again}), "the same program, byte for byte\n");

  const Outcome workers = run_program({.args = {"diff-programs", a, save("c.heddle", {"--workers", "4"})}});
  EXPECT_EQ(workers.code, 1);
  expect_words(workers.out, {"workers\n      first   3\n      second  4", "homes", "tiles", "streams"});
  EXPECT_EQ(workers.out.find("opcodes"), std::string::npos) << workers.out;
  const Outcome fused =
      run_program({.args = {"diff-programs", a, save("d.heddle", {"--workers", "3", "--no-fuse"})}});
  expect_words(fused.out, {"linear+add, rms_norm+linear", "layers.0.qkv", "buffers"});
  const Outcome order = run_program(
      {.args = {"diff-programs", a, save("e.heddle", {"--workers", "3", "--scheduler", "backward"})}});
  expect_words(order.out, {"streams", "worker "});
  const Outcome missing = run_program({.args = {"diff-programs", a, kModel + "/config.json"}});
  EXPECT_EQ(missing.code, 1);
  expect_words(missing.err, {"config.json", "not a program"});
}

TEST(Command, SchedulePredictsEachPolicy) {
  Scratch scratch;
  const std::string costs = scratch.path("costs.json"), page = scratch.path("page.html");
  const std::string text = in_long_lines(output({"schedule", kModel, "--compare", "--workers", "5"}), 4);
  expect_words(
      text, {"llama T=1 on 5 workers", "costs that were not measured on this machine", "step us", "balance",
             "backward ", "dag ", "level_batched ", "pool ", "round_robin ", "wave ", "zigzag "});
  output({"profile", kModel, "--position", "9", "--steps", "3", "--workers", "2", "--costs", costs});
  expect_words(read_file(costs), {"ns_per_message", "\"attention\": "});
  const std::string calibrated = in_long_lines(output({"schedule", kModel, "--scheduler", "dag", "--workers",
                                                       "2", "--calibrate", costs, "--plot", page}),
                                               4);
  expect_words(calibrated, {"predicted, costs of " + costs, "dag "});
  EXPECT_EQ(calibrated.find("zigzag"), std::string::npos);
  const std::string html = read_file(page);
  expect_words(html, {"heddle timeline", "dag, predicted", "rms_norm linear", "id=\"nanotrace\""});
  EXPECT_EQ(html.find("{{"), std::string::npos);
  EXPECT_EQ(html.find("id=\"nanotrace-1\""), std::string::npos);
  expect_words(output({"trace", page}), {"a step of ", "2 workers on 2 units", "rms_norm linear"});
  output({"schedule", kModel, "--compare", "--workers", "2", "--plot", page});
  expect_words(read_file(page), {"dag, predicted", "zigzag, predicted", "id=\"nanotrace-1\""});
  EXPECT_EQ(html.find("http"), std::string::npos) << "it needs no other file";
  write_file(costs, "{");
  EXPECT_EQ(run_program({.args = {"schedule", kModel, "--calibrate", costs}}).code, 1);
  EXPECT_EQ(run_program({.args = {"schedule", kModel, "--rows", "0"}}).code, 2);
  EXPECT_EQ(run_program({.args = {"schedule", kModel, "--scheduler", "fifo"}}).code, 2);
}

// Neither a GPU nor weights are needed to say which calls of a prompt it runs as whole kernels.
TEST(Command, ScheduleNamesWholeKernels) {
  Scratch scratch;
  const std::string page = scratch.path("page.html");
  const std::vector<std::string> prompt = {"schedule",  kStoryteller, "--executor",  "megakernel",
                                           "--workers", "8",          "--scheduler", "dag"};
  std::vector<std::string> many = prompt;
  many.insert(many.end(), {"--rows", "512", "--plot", page});
  const std::string kernel = "linear_kernel.sm90 (fold=1,rows=64,split=1,stages=8)";
  const std::string text = in_long_lines(output(many), 4);
  expect_words(text, {"launches on ", "sm_90a", "runs these calls, whose tiles the prediction counts:\n",
                      "5 calls of linear rope_rows kv_append: " + kernel + ", 8 CTAs of 384 threads\n",
                      "rms_norm linear: tiles; no whole kernel because rms_norm is its prologue\n"});
  expect_words(read_file(page), {"kv_append: " + kernel});
  expect_words(output({"trace", page}), {"kv_append: " + kernel});
  EXPECT_EQ(output(prompt).find("whole kernel"), std::string::npos) << "a step of one row has none";
}

TEST(Command, ScheduleMeasuresEachPolicy) {
  Scratch scratch;
  const std::string file = scratch.path("schedules.json");
  const std::vector<std::string> fast = {"--position", "5",         "--steps", "4",          "--rounds",
                                         "3",          "--workers", "3",       "--executor", "threads"};
  const auto measure = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"schedule", kStoryteller, "--measure"});
    args.insert(args.end(), fast.begin(), fast.end());
    return args;
  };
  const std::string text = in_long_lines(output(measure({"--compare", "--commit", "abc", "--out", file})), 4);
  expect_words(text, {"costs of a traced run of the first", "measured with threads on ", "measured us",
                      "off %", "\nlevel_batched ", "\nzigzag "});
  const Json results = load_json(file);
  EXPECT_EQ(results.at("commit"), "abc");
  expect_words(results.at("command").as_string(),
               {"heddle schedule storyteller ", " --compare --measure ",
                " --position 5 --steps 4 --rounds 3 ", " --executor threads"});
  ASSERT_EQ(results.at("rows").size(), 7u);
  for (const Json& row : results.at("rows").items()) {
    EXPECT_EQ(row.at("all").size(), 3u);
    const double value = row.at("value").as_number();
    EXPECT_GT(value, 0);
    EXPECT_NEAR(row.at("deviation_percent").as_number(), 100 * (row.at("predicted").as_number() / value - 1),
                1e-6);
  }
  expect_words(output(measure({"--rows", "8", "--scheduler", "dag"})), {"T=8 on 3 workers", "\ndag "});
  EXPECT_EQ(run_program({.args = {"schedule", kStoryteller, "--out", file}}).code, 2);
  EXPECT_EQ(run_program({.args = measure({"--max-context", "4"})}).code, 2);
}

TEST(Command, EvalMeasuresATextAndComparesModels) {
  Scratch scratch;
  const std::string file = scratch.path("text");
  const Json document = load_json(kStoryteller + "/expected.json"),
             &expected = document.at("stories").items()[0];
  write_file(file, expected.at("prompt").as_string() + expected.at("text").as_string());
  const Json found = parse_json(output({"eval", kStoryteller, "--text", file, "--compare", kStoryteller,
                                        "--window", "256", "--stride", "64", "--json"}),
                                "eval");
  // Computed by transformers in fp32; scripts/parity_eval.py compares more.
  EXPECT_NEAR(found.at("perplexity").as_number(), 1.23720, 2e-3);
  EXPECT_NEAR(found.at("loss").as_number(), std::log(found.at("perplexity").as_number()), 1e-9);
  EXPECT_EQ(found.at("kl"), 0);
  EXPECT_EQ(found.at("top1_agreement"), 1);
  // One more window for each 64 tokens after 256. All tokens except the first are scored.
  const size_t tokens = size_t(found.at("tokens").as_number()) + 1;
  EXPECT_EQ(found.at("windows"), 1 + (tokens - 256 + 63) / 64);
  EXPECT_EQ(tokens, expected.at("ids").size() - 1 + 5)
      << "the prompt has 5, and the end of the text is none of it";
  expect_words(output({"eval", kStoryteller, "--text", file}),
               {"perplexity  1.17", "nats a token", "in 1 window"});
}

TEST(Command, PrintsNoRateOfNothing) {
  const Outcome one =
      run_program({.args = {"generate", kStoryteller, "--prompt", "27 + 45 =", "--max-tokens", "1"}});
  expect_words(one.err, {"; 1 new tokens; ended by"});
  const Outcome talk = run_program(
      {.args = {"chat", kStoryteller, "--max-tokens", "1", "--template", "/dev/null"}, .input = "/stats\n"});
  for (const std::string& text : {one.err, talk.err, talk.out})
    for (const char* word : {"nan", "inf/s", " 0.0/s"}) EXPECT_EQ(text.find(word), std::string::npos) << text;
}

TEST(Command, SaysWhatMemoryIsNeeded) {
  const Outcome outcome =
      run_program({.args = {"generate", kStoryteller, "--prompt", "27 + 45 =", "--verbose"}});
  EXPECT_EQ(outcome.out, " 72.\n");
  // 5 layers x (keys, values) x 2 heads x 32 numbers x 2 bytes x 768 positions.
  expect_words(outcome.err,
               {"[memory: weights 7.", "KV cache 1.0 MB (1 sequence of 768 positions)", "programs "});
}

TEST(Command, EnvSaysWhyADriverIsNoUse) {
  const std::pair<const char*, std::vector<std::string>> drivers[] = {
      {"old", {"gpu         none: the NVIDIA driver is too old: it is for CUDA 11.8", "12.0 or newer"}},
      {"empty", {"gpu         none: there is an NVIDIA driver but no GPU", "driver      for CUDA 13.0"}},
      {"broken", {"does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (driver and library are"}},
      {"small", {"not complete: libcuda.so.1 has no cu"}},
  };
  const Variable folder("LD_LIBRARY_PATH", HEDDLE_FAKE_DRIVER);
  for (const auto& [ails, words] : drivers) {
    const Variable fault("FAKE_DRIVER", ails);
    const std::string text = in_long_lines(output({"env"}));
    expect_words(text, words);
    expect_words(text, {"default     threads\n", "(not here)"});
    for (const std::string& word : words)
      EXPECT_EQ(text.find(word), text.rfind(word)) << "twice in\n" << text;
  }
}

TEST(Command, EnvSaysAThingOnce) {
  const std::string text = in_long_lines(output({"env"}));
  for (const char* word : {" cores for this process, by ", "no NVIDIA driver here"})
    EXPECT_EQ(text.find(word), text.rfind(word)) << word << " twice in\n" << text;
  expect_words(text, {" cores for this process, by "});
}

TEST(Command, CacheIsShownAndCleared) {
  Scratch scratch;
  const std::string folder = scratch.path("cache");
  const Variable cache("HEDDLE_CACHE", folder);
  expect_words(output({"cache"}), {folder, "entries     0\n"});
  std::filesystem::create_directory(folder);
  write_file(folder + "/x.cubin", "12345");
  expect_words(output({"cache", "--json"}),
               {"\"entries\": 1", "\"bytes\": 5", "\"limit_bytes\": 1073741824"});
  expect_words(output({"cache", "--clear"}), {"removed     1 compiled programs, 5 bytes", "entries     0\n"});
}

TEST(Command, ChecksBodiesForAGpuThatIsNotHere) {
  const Outcome outcome =
      run_program({.args = {"check", "--arch", "sm_80,sm_120", "--ops", "rms_norm,add", "--json"}});
  if (outcome.err.find("libnvrtc) is not here") != std::string::npos) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_words(outcome.out,
               {"\"op\": \"rms_norm\"", "\"sm_80\"", "\"sm_120\"", "\"registers\"", "\"failure\": \"\""});
}

TEST(Command, WritesConversationsOnlyWithATemplate) {
  Scratch scratch;
  const std::string model = scratch.link_model(kStoryteller, "silent");
  std::filesystem::remove(model + "/chat_template.jinja");
  const Outcome outcome = run_program({.args = {"template", model}, .input = "[]"});
  EXPECT_EQ(outcome.code, 1);
  expect_words(outcome.err, {"silent", "no chat template", "tokenizer_config.json"});
}

TEST(Command, TuneKeepsWhatItFinds) {
  Scratch scratch;
  const Variable store("HEDDLE_TUNED", scratch.path("tuned"));
  const Outcome first = run_program({.args = {"tune", "matmul", "--size", "M=8,N=8,K=8", "--threads", "1"}});
  const Outcome second = run_program({.args = {"tune", "matmul", "--size", "M=8,N=8,K=8", "--threads", "1"}});
  EXPECT_EQ(first.code, 0) << first.err;
  expect_words(first.out, {"configuration", "ratio", "columns=64,rows=64 ", "columns=128,rows=128 ",
                           "  best\n", "M=5..8 N=8 threads=1 on ", "tuned: config ", " ms a call"});
  EXPECT_NE(second.out.find("known before"), std::string::npos) << second.out;
  const auto refusal = [](const std::string& op, const std::string& sizes) {
    return run_program({.args = {"tune", op, "--size", sizes}}).err;
  };
  expect_words(refusal("matmul", "M=8,N=8"), {"K has no size; give --size K="});
  expect_words(refusal("matmul", "M=8x"), {"--size M=8x must be a whole number"});
  expect_words(refusal("argmax", "M=8"), {"has no configurations"});
  expect_words(refusal("linear", "M=8"), {"is a part of programs"});
  expect_words(refusal("nothing", "M=8"), {"nothing is neither an op nor the folder of a model"});
  expect_words(refusal("matml", "M=8"), {"did you mean matmul?"});
  expect_words(refusal(kStoryteller, "M=8"), {"--size is for an op"});
}

TEST(Command, LoadsWhatTuneFoundForAModel) {
  Scratch scratch;
  const Variable store("HEDDLE_TUNED", scratch.path("tuned"));
  const auto generate = [&] {
    return run_program({.args = {"generate", kStoryteller, "--prompt", "Once", "--max-tokens", "3",
                                 "--verbose", "--executor", "threads"}});
  };
  const Outcome before = generate();
  const Outcome tuned = run_program({.args = {"tune", kStoryteller, "--prompt", "4", "--answer", "4",
                                              "--executor", "threads", "--max-configs", "2"}});
  const Outcome after = generate();
  EXPECT_EQ(tuned.code, 0) << tuned.err;
  expect_words(tuned.out,
               {"scheduler\nconfiguration", "\ndefault ", "llama of 4 and 4 tokens on ", "\nscheduler "});
  EXPECT_EQ(before.err.find("[tuned:"), std::string::npos) << before.err;
  expect_words(after.err, {"[tuned: scheduler "});
  EXPECT_EQ(after.out, before.out);
}

TEST(Command, LayoutShowsWhoHoldsWhatAndWhereItLies) {
  // Lane 4 has row 1; its second pair is of the row eight below.
  expect_words(output({"layout", "mma.m16n8k16.bf16", "--cols", "4"}),
               {"16 x 8, 32 threads hold 4 elements each", "\n   1   4.0  4.1  5.0  5.1\n",
                "\n   9   4.2  4.3  5.2  5.3\n"});
  // The second row of 128 bytes has its first word second.
  expect_words(
      output({"layout", "wgmma.m64n64k16.bf16", "--part", "left-tile", "--rows", "2", "--cols", "2"}),
      {"64 x 64, 8192 bytes on chip", "\n   1  4:144 4:146\n", "2 of 64 rows",
       "descriptor 0x4000004000010000", "the next 16 of k is 32 bytes on"});
  const std::string box = output({"layout", "matmul", "--box", "1", "--rows", "1"});
  expect_words(
      box, {"matmul_kernel.sm90 in configuration", "threads, clusters of", "box 1", "a cell is bank:byte"});
  const auto refusal = [](const std::vector<std::string>& args) { return run_program({.args = args}).err; };
  expect_words(refusal({"layout", "matml"}), {"did you mean matmul?"});
  expect_words(refusal({"layout", "wgmma.m64n60k16.bf16"}),
               {"neither an op nor an instruction", "mma.m16n8k16.bf16"});
  expect_words(refusal({"layout", "argmax"}), {"no whole kernel"});
  expect_words(refusal({"layout", "matmul", "rows=7"}), {"configuration rows=7; there are", "kernel=1"});
  expect_words(refusal({"layout", "wgmma.m64n8k16.bf16", "--part", "right"}), {"--part right-tile"});
  expect_words(refusal({"layout", "wgmma.m64n8k16.bf16", "--part", "left-tile", "--depth", "24"}),
               {"spans of 128 bytes"});
}

TEST(Command, HelpTeaches) {
  expect_words(output({"--help"}), {"Examples:", "Exit codes: 0 done; 1 failed", "inspect", "env"});
  for (const std::string command :
       {"bench", "cache", "chat", "check", "compile", "diff", "diff-programs", "env", "eval", "generate",
        "inspect", "layout", "logits", "profile", "schedule", "template", "tokenize", "trace", "tune"})
    expect_words(output({command, "--help"}), {"Example", "heddle " + command});
}

}  // namespace
}  // namespace heddle
