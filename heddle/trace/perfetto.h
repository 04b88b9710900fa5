// The timeline as Perfetto's protobuf trace, which ui.perfetto.dev opens: a track for each lane, a slice for each wait,
// instruction and publication, and an arrow from the producer that was waited for last.
#pragma once

#include <string>

#include "heddle/trace/timeline.h"

namespace heddle {

std::string serialise_perfetto(const Timeline& timeline);

}  // namespace heddle
