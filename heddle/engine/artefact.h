// Connects artefacts (ir/artefact.h) and engines. Making an artefact builds the programs that an engine would
// build; an engine that is given an artefact takes every setting that decides programs from it, and builds,
// proves and compiles nothing.
#pragma once

#include <memory>

#include "heddle/engine/engine.h"
#include "heddle/ir/artefact.h"

namespace heddle {

// Makes the programs of all row classes of an engine with these options on such a device, proved and
// compiled. Reads no weights except samples for the checkpoint's fingerprint, and needs no device. Throws
// Error when a program is rejected, or when the device needs a compiler and there is none.
Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device);

// Copies the settings of options.artefact into `options`. Throws Error with both values when it belongs to
// another checkpoint or device, or when `options` ask for something that its programs do not have.
void take_settings(const Model& model, EngineOptions& options);

// Throws Error when the weights and pages of a program from a file are not those of the model's graph.
void require_memory(const Program& program, const Graph& graph);

}  // namespace heddle
