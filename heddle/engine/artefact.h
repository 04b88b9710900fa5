// Artefacts (ir/artefact.h) and engines: one is made as an engine would make its programs, and an engine with one makes
// none.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "heddle/engine/options.h"
#include "heddle/ir/artefact.h"

namespace heddle {

// The programs of all row classes of an engine with these options on such a device, proved and compiled. Reads no weights
// but for the checkpoint's fingerprint, and needs no device. Throws Error where a program is rejected, or where there is
// no compiler and the device needs one.
Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device);

// What of the options decides programs, by name, as an artefact keeps it.
std::map<std::string, std::string> settings_of(const EngineOptions& options);
// The options by which the programs were made; all others are as they are by default. Throws Error(kIo) where the file's
// settings are not those of this heddle.
EngineOptions options_of(const Artefact& artefact);

// Puts what options.artefact says of its programs into `options`; without one, nothing changes. Throws Error with both
// values where it is for another checkpoint or device, or where `options` want what its programs do not have.
void take_settings(const Model& model, EngineOptions& options);

// Throws Error where the weights and pages of a program from a file are not those of the model's graph.
void require_memory(const Program& program, const Graph& graph);

// What it holds and what it is for.
std::string print_artefact(const Artefact& artefact);

}  // namespace heddle
