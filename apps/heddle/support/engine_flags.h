// The flags that all commands with a model share. Loads a model with a progress line.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/heddle/support/command.h"
#include "heddle/engine/engine.h"

namespace heddle {

struct EngineFlags {
  std::string model, adapter;
  EngineOptions asked;  // what the flags of options set
  std::string program;  // an artefact
  std::string device;   // as it was typed; empty: the best one
  bool no_fuse = false, generic = false, verbose = false, prove = false;

  void add_to(Command& command);
  // Adds only the flags that decide a program. `what` describes the model argument of the command, which is
  // a folder that must be given unless `traits` say otherwise.
  void add_program_to(Command& command, const std::string& what,
                      const ArgumentTraits& traits = {.required = true, .names = Names::kFolder});
  void add_executor_to(Command& command);
  void add_device_to(Command& command);  // part of add_executor_to()
  void add_threads_to(Command& command);
  // For commands whose programs may come from an artefact.
  void add_artefact_to(Command& command);
  EngineOptions options() const;

 private:
  // Puts the device into the options, and an executor where none is named.
  void choose_device(EngineOptions& options) const;
  // Flags of the options that are wanted; `more` is added to their help, `also` to their choices.
  void add_options(Command& command,
                   const std::function<bool(const std::string& name, const Option&)>& wanted,
                   const char* more = "", const std::string& also = "");
  std::shared_ptr<const Artefact> artefact() const;
};

// Says on stderr that so many threads are far more than there are cores.
void warn_of_threads(i32 threads);
// Opens the folder and prints what a user should know about how it was read to stderr.
std::unique_ptr<Model> load_model(const EngineFlags& flags);
// The positions that a sequence of an engine with these options has. Opens the folder, but reads no weights.
i32 context_of(const EngineFlags& flags, EngineOptions options);
// Opens the folder and loads its weights. If stderr is a terminal, prints the memory it needs and its
// progress there.
std::unique_ptr<Engine> load_engine(const EngineFlags& flags, EngineOptions options);
// The planner of an engine with these options, which it completes. Opens the folder, but reads no weights.
Planner load_planner(const EngineFlags& flags, EngineOptions& options);

}  // namespace heddle
