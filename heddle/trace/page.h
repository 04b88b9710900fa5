// Timelines as a single page: it holds the .nanotrace, its summary, and the script that draws them. It
// loads nothing else.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heddle/trace/timeline.h"

namespace heddle {

std::string timeline_page(const Timeline& timeline);
// A page of several timelines, of which a person chooses one by its executor's name. Readers of files take the first.
std::string timelines_page(const std::string& title, std::span<const Timeline> timelines);

bool is_timeline_page(std::string_view bytes);
// Finds the .nanotrace in a page. Throws Error(kIo) when there is none.
std::string nanotrace_of_page(std::string_view page, const std::string& where);

}  // namespace heddle
