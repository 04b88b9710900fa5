// Settings of answers and options of engines, from keywords of Python. Which there are is said by AnswerSettings::visit and
// EngineOptions::visit.
#pragma once

#include <string>
#include <vector>

#include "heddle/engine/options.h"
#include "heddle/session/settings.h"
#include "python/src/object.h"

namespace heddle::python {

// `settings` with those that `given` names; None leaves one as it is. Throws Error(kInvalidArgument), and says `where`.
AnswerSettings settings_with(AnswerSettings settings, const nanobind::dict& given, const std::string& where);

// Options of an engine on `device`: "auto", "cpu", "cuda" or "cuda:1".
EngineOptions options_with(const std::string& device, const nanobind::dict& given);

// Tokens of a list of Python, each of which a model of `vocab` tokens knows. `also`: for messages, what else may be given.
std::vector<i32> tokens_with(nanobind::handle given, i32 vocab, const std::string& where,
                             const char* also = "");

// Describes each keyword: (name, type in Python, help).
nanobind::list describe_settings();
nanobind::list describe_options();

}  // namespace heddle::python
