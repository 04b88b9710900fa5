// The files that a timeline can be read from and written to.
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/trace/chrome.h"
#include "heddle/trace/page.h"
#include "heddle/trace/perfetto.h"
#include "heddle/trace/timeline.h"
#include "heddle/trace/timeline_file.h"

namespace heddle {
namespace {

bool ends_in(const std::string& path, std::string_view ending) {
  return path.size() > ending.size() && path.ends_with(ending);
}

bool is_perfetto(const std::string& path) {
  return ends_in(path, ".perfetto-trace") || ends_in(path, ".perfetto");
}

}  // namespace

Timeline parse_timeline(std::string_view bytes, const std::string& where) {
  if (is_timeline_page(bytes)) return parse_timeline(nanotrace_of_page(bytes, where), where);
  return from_nanotrace(parse_nanotrace(bytes, where), where);
}

Timeline read_timeline(const std::string& path) {
  return parse_timeline(read_file(path), path);
}

void require_timeline_path(const std::string& path) {
  require(
      ends_in(path, ".nanotrace") || ends_in(path, ".html") || ends_in(path, ".json") || is_perfetto(path),
      "[{}] a timeline is written as .nanotrace, .html, .json, .perfetto-trace or .perfetto, by the ending "
      "of its name",
      path);
}

void write_timeline(const Timeline& timeline, const std::string& path) {
  require_timeline_path(path);
  if (is_perfetto(path))
    write_file(path, serialise_perfetto(timeline));
  else if (ends_in(path, ".html"))
    write_file(path, timeline_page(timeline));
  else if (ends_in(path, ".json"))
    write_file(path, serialise_chrome(timeline));
  else
    write_file(path, serialise_nanotrace(to_nanotrace(timeline)));
}

}  // namespace heddle
