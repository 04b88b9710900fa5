// Artefacts (ir/artefact.h) and engines: one is made as an engine would make its programs, and an engine with one makes
// none.
#pragma once

#include <memory>

#include "heddle/engine/engine.h"
#include "heddle/ir/artefact.h"

namespace heddle {

// The programs of all row classes of an engine with these options on such a device, proved and compiled. Reads no weights
// but for the checkpoint's fingerprint, and needs no device. Throws Error where a program is rejected, or where there is
// no compiler and the device needs one.
Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device);

// What options.artefact says of its programs, put into `options`. Throws Error with both values where it is for another
// checkpoint or device, or where `options` want what its programs do not have.
void take_settings(const Model& model, EngineOptions& options);

// Throws Error where the weights and pages of a program from a file are not those of the model's graph.
void require_memory(const Program& program, const Graph& graph);

}  // namespace heddle
