// The timeline in the format of chrome://tracing, JSON, which many other viewers read too: a row for each lane, an event for
// each wait, instruction and publication, and an arrow from the producer that was waited for last. Times are microseconds.
#pragma once

#include <string>

#include "heddle/trace/timeline.h"

namespace heddle {

std::string serialise_chrome(const Timeline& timeline);

}  // namespace heddle
