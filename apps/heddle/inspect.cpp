// heddle inspect: shows the sizes, graph and program of a model, or what a saved program holds.
#include <algorithm>

#include <fmt/core.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/gguf.h"
#include "heddle/base/json.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/coded_weights.h"
#include "heddle/ir/program/print.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/text/generation_config.h"
#include "heddle/text/tokenizer_files.h"

namespace heddle {
namespace {

constexpr size_t kHanging = 12;  // columns before what goes on in a line of its own

struct InspectFlags {
  EngineFlags engine;
  i32 rows = 1;
  bool graph = false, program = false, all = false, json = false;
  std::string save;
};

double megabytes(i64 bytes) {
  return double(bytes) / 1e6;
}

// The number of parameters, and the memory that they and one position of the KV pages take.
struct ModelSizes {
  i64 parameters = 0, weight_bytes = 0, page_bytes = 0;
  size_t matrices = 0, vectors = 0;

  explicit ModelSizes(const ModelGraph& model) {
    for (const auto& [name, weight] : model.weights) {
      ++matrices;
      parameters += i64(weight.rows()) * weight.cols;
    }
    for (const auto& [name, vector] : model.vectors) {
      if (vector.sources.empty()) continue;  // computed, not learnt
      ++vectors;
      for (const WeightSource& source : vector.sources) parameters += source.rows;
    }
    for (const Buffer& buffer : model.graph.buffers()) {
      if (buffer.kind == BufferKind::kWeight) weight_bytes += buffer.bytes;
      if (buffer.kind == BufferKind::kPages) page_bytes += buffer.bytes;
    }
  }
};

void show_model(const std::string& folder, const Planner& planner) {
  const ModelInfo& info = planner.model().info();
  const Capacity& capacity = planner.capacity();
  const ModelSizes sizes(planner.graph(1, 1));
  std::string text = fmt::format(
      "{}\n  family    {}: {} layers, {} key/value heads of {}, vocabulary {}, {} positions\n", folder,
      info.family, info.layers, info.kv_heads, info.head_dim, info.vocab, info.max_positions);
  if (!info.position_limit.empty()) text += fmt::format("            {}\n", info.position_limit);
  if (info.default_positions() < info.max_positions)
    text += fmt::format("            the context of {} here is {} one\n", capacity.context,
                        capacity.context > info.default_positions() ? "a longer" : "a short");
  text += fmt::format("  weights   {}: {} parameters in {} matrices and {} vectors, {:.1f} MB packed\n",
                      name(info.weight_dtype), sizes.parameters, sizes.matrices, sizes.vectors,
                      megabytes(sizes.weight_bytes));
  const CodedWeights codes(planner.graph(1, 1));
  for (const std::string& line : {codes.text(), codes.note()})
    if (!line.empty()) text += fmt::format("            {}\n", line);
  text += fmt::format("  KV cache  {}: {} bytes a position, {:.1f} MB for a context of {}\n",
                      name(capacity.kv_dtype.value_or(info.weight_dtype)),
                      sizes.page_bytes / (i64(capacity.num_pages) * capacity.page_size),
                      megabytes(sizes.page_bytes), capacity.pages_per_sequence * capacity.page_size);
  print(wrapped(text, output_columns(), kHanging));
}

// The settings of generation that the model's files have, each with its file.
void show_generation(const std::string& folder) {
  GenerationConfig config;
  try {
    config = GenerationConfig::load(folder);
  } catch (const Error& error) {
    print("generation\n  {}\n", error.what());
    return;
  }
  print("generation{}\n",
        config.sources.empty() ? ": no settings in generation_config.json or config.json" : "");
  for (const auto& [name, value, where] : config.sources)
    print(wrapped(fmt::format("  {:<28} {:<24} {}", name, value, where), output_columns(), kHanging) + "\n");
}

// A token's text, the size of a list, or the beginning of a long text.
std::string shown(const Json& value) {
  constexpr size_t kMostEntries = 4, kMostChars = 24;  // as wide as their column
  if (const Json* content = value.find("content")) return brief(*content);
  if (value.size() > kMostEntries) return fmt::format("{} entries", value.size());
  const std::string text = brief(value);
  return text.size() <= kMostChars ? text : text.substr(0, kMostChars - 3) + "...";
}

// The settings of the tokenizer, each with its file.
void show_tokenizer(const std::string& folder) {
  try {
    const TokenizerFiles files(folder);
    print("tokenizer{}{}\n", files.class_name().empty() ? "" : ", as " + files.class_name() + " has it",
          files.settings().empty() ? ": no settings" : "");
    for (const auto& [name, value, where] : files.settings())
      print(
          wrapped(fmt::format("  {:<28} {:<24} {}", name, shown(value), where), output_columns(), kHanging) +
          "\n");
  } catch (const Error& error) {
    print("tokenizer\n  {}\n", error.what());
  }
}

void show_row_classes(const Planner& planner) {
  print("programs for steps of up to so many rows\n  rows  calls  instructions  counters   arena bytes\n");
  for (i32 rows : planner.row_classes()) {
    const Program program = planner.program(rows, 1);
    print("  {:>4} {:>6} {:>13} {:>9} {:>13}\n", rows, program.calls.size(), program.num_instructions(),
          program.counters.size(), program.arena_bytes);
  }
}

void show_fused(const Planner& planner, i32 rows) {
  std::vector<std::string> log;
  planner.fused(rows, 1, &log);
  print("fused: {} calls into others\n", log.size());
  for (const std::string& line : log) print(wrapped("  " + line, output_columns(), kHanging) + "\n");
}

Json json_of(const Program& program) {
  return Json::object({{"name", program.name},
                       {"rows", program.shape.rows},
                       {"sequences", program.shape.sequences},
                       {"workers", program.workers.size()},
                       {"calls", program.calls.size()},
                       {"opcodes", program.opcodes.size()},
                       {"instructions", program.num_instructions()},
                       {"counters", program.counters.size()},
                       {"arena_bytes", program.arena_bytes}});
}

// Bytes in memory, by code and by the reason for an expansion.
Json json_of(const CodedWeights& codes) {
  const auto bytes_of = [](const auto& kinds) {
    Json made = Json::object({});
    for (const auto& [key, kind] : kinds) made[key] = kind.bytes;
    return made;
  };
  return Json::object({{"kept", bytes_of(codes.kept)}, {"expanded", bytes_of(codes.expanded)}});
}

Json json_of(const std::string& folder, const Planner& planner) {
  const ModelInfo& info = planner.model().info();
  const Capacity& capacity = planner.capacity();
  const ModelSizes sizes(planner.graph(1, 1));
  Json settings = Json::array(), programs = Json::array();
  for (const auto& [name, value, where] : GenerationConfig::load(folder).sources)
    settings.push_back(Json::object({{"name", name}, {"value", value}, {"file", where}}));
  for (i32 rows : planner.row_classes()) programs.push_back(json_of(planner.program(rows, 1)));
  return Json::object(
      {{"folder", folder},
       {"family", info.family},
       {"layers", info.layers},
       {"kv_heads", info.kv_heads},
       {"head_dim", info.head_dim},
       {"vocab", info.vocab},
       {"max_positions", info.max_positions},
       {"dtype", name(info.weight_dtype)},
       {"parameters", sizes.parameters},
       {"weight_bytes", sizes.weight_bytes},
       {"codes", json_of(CodedWeights(planner.graph(1, 1)))},
       {"kv_dtype", name(capacity.kv_dtype.value_or(info.weight_dtype))},
       {"kv_bytes_a_position", sizes.page_bytes / (i64(capacity.num_pages) * capacity.page_size)},
       {"context", capacity.pages_per_sequence * capacity.page_size},
       {"generation", settings},
       {"programs", programs}});
}

// A program that is saved is shown only where that was asked for.
void show_program(const InspectFlags& flags, const Program& program) {
  if (flags.program)
    print(wrapped(print_program(program, flags.all ? PrintOptions{} : PrintOptions{2, 24}), output_columns(),
                  kHanging));
  else if (flags.save.empty())
    print(wrapped(print_summary(program), output_columns(), kHanging));
  if (flags.save.empty()) return;
  save_program(program, flags.save);
  say_written(flags.save);
}

void inspect_file(const InspectFlags& flags) {
  refuse_other_formats(flags.engine.model);
  require(!flags.graph, "[inspect] {} is a program, which keeps no graph; --graph takes a model folder",
          flags.engine.model);
  if (!is_artefact(flags.engine.model)) {
    const Program program = load_program(flags.engine.model);
    return flags.json ? print_json(json_of(program)) : show_program(flags, program);
  }
  const Artefact artefact = load_artefact(flags.engine.model);
  if (flags.json) return print_json(json_of(artefact));
  if (!flags.program && flags.save.empty())
    print(wrapped(print_artefact(artefact), output_columns(), kHanging));
  std::vector<i32> classes;
  for (const ProvedProgram& program : artefact.programs) classes.push_back(program.rows);
  const i32 rows = row_class(classes, flags.rows, 1);
  show_program(flags, artefact.program(rows, std::min(rows, options_of(artefact).max_sequences)));
}

void inspect_model(const InspectFlags& flags) {
  EngineOptions options = flags.engine.options();
  const Planner planner = load_planner(flags.engine, options);
  if (flags.json) return print_json(json_of(flags.engine.model, planner));
  const i32 rows = planner.row_class(flags.rows, 1);
  if (flags.graph) print(wrapped(print_graph(planner.fused(rows, 1)), output_columns(), kHanging));
  if (flags.graph && !flags.program && flags.save.empty()) return;
  const bool overview = !flags.graph && !flags.program && flags.save.empty();
  if (overview) show_model(flags.engine.model, planner);
  show_program(flags, planner.program(rows, 1));
  if (!overview) return;
  show_generation(flags.engine.model);
  show_tokenizer(flags.engine.model);
  show_row_classes(planner);
  if (flags.all) show_fused(planner, rows);
}

void run(const InspectFlags& flags) {
  require(flags.rows >= 1, "[inspect] --rows is {}; must be positive", flags.rows);
  require(!flags.json || (!flags.graph && !flags.program && flags.save.empty()),
          "[inspect] --json has the sizes; leave out --graph, --program and --save");
  if (is_file(flags.engine.model) && !is_gguf(flags.engine.model))
    inspect_file(flags);
  else
    inspect_model(flags);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  Command command(app, "inspect",
                  "Show sizes, graph and program of a model, or the content of a .heddle file");
  flags->engine.add_program_to(command,
                               "model folder, or a .heddle file; options such as --workers need a folder",
                               {.required = true, .names = Names::kPath});
  command.argument("--graph", &flags->graph, "print the graph after fusion: buffers, calls, arguments");
  command.argument("--program", &flags->program,
                   "print the program: tables, then each worker's instructions");
  command.argument("--all", &flags->all, "print every worker and instruction, and every call that was fused");
  command.argument("--rows", &flags->rows,
                   "rows of the step: 1 for a next token, up to 512 for a part of a prompt");
  command.argument("--save", &flags->save, "write the program to this file; `heddle check` proves it again",
                   {.names = Names::kNewFile});
  command.argument("--json", &flags->json, "print the sizes as JSON");
  command.footer(
      "Reads no weights, so it is quick for any size. Words: a home is the worker that owns rows of a "
      "weight; the\n"
      "arena is memory that activations share; a counter tells one worker that others are done.\n"
      "Examples:\n"
      "  heddle inspect models/storyteller\n"
      "  heddle inspect models/storyteller --graph\n"
      "  heddle inspect models/storyteller --program --workers 4 --rows 8\n"
      "  heddle inspect models/storyteller --save decode.heddle && heddle check decode.heddle");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
