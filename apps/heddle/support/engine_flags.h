// The flags that every command with a model shares, and the loading of a model with its progress line.
#pragma once

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "heddle/engine/engine.h"

namespace heddle {

struct EngineFlags {
  std::string model;
  std::string executor = "threads", scheduler = "level_batched";
  i32 workers = 0, threads = 0, max_context = 0;
  bool no_fuse = false;

  void add_to(CLI::App& command);
  // Only those that decide a program; `what` says what the command takes for a model. Returns the model's option.
  CLI::Option* add_program_to(CLI::App& command, const std::string& what);
  void add_threads_to(CLI::App& command);
  EngineOptions options() const;
};

// Throws Error where the path is no folder, before files in it are looked for.
void require_model_folder(const std::string& path);
// Opens the folder and loads its weights; prints what it does to stderr when that is a terminal.
std::unique_ptr<Engine> load_engine(const EngineFlags& flags, EngineOptions options);
// Opens the folder, but reads no weights.
Planner load_planner(const EngineFlags& flags);

}  // namespace heddle
