// Connects artefacts (ir/executor/artefact.h) and engines. Making an artefact builds the programs that an engine would
// build; an engine that is given an artefact takes every setting that decides programs from it, and builds,
// proves and compiles nothing.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "heddle/engine/options.h"
#include "heddle/ir/executor/artefact.h"

namespace heddle {

class Json;

// Makes the programs of all row classes of an engine with these options on such a device, proved and
// compiled. Reads no weights except samples for the checkpoint's fingerprint, and needs no device. Throws
// Error when a program is rejected, or when the device needs a compiler and there is none.
Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device);

// Lists the options that decide programs, by name, as an artefact keeps them.
std::map<std::string, std::string> settings_of(const EngineOptions& options);
// The options by which the programs were made; all others are as they are by default. Throws Error(kIo) where the file's
// settings are not those of this heddle.
EngineOptions options_of(const Artefact& artefact);

// Copies the settings of options.artefact into `options`; without an artefact, nothing changes. Throws Error with both
// values when it belongs to another checkpoint or device, or when `options` ask for something that its programs do not
// have.
void take_settings(const Model& model, EngineOptions& options);

// Throws Error when the weights and pages of a program from a file are not those of the model's graph.
void require_memory(const Program& program, const Graph& graph);

// Prints what an artefact holds and which device it is for.
std::string print_artefact(const Artefact& artefact);
Json json_of(const Artefact& artefact);

}  // namespace heddle
