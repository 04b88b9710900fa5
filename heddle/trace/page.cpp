#include "heddle/trace/page.h"

#include <fmt/format.h>

#include "heddle/base/base64.h"
#include "heddle/base/error.h"
#include "heddle/trace/page_frame.h"
#include "heddle/trace/page_sources.h"
#include "heddle/trace/summary.h"
#include "heddle/trace/timeline_file.h"

namespace heddle {
namespace {

constexpr std::string_view kPageMark = "<meta name=\"generator\" content=\"heddle timeline\">";
constexpr std::string_view kDataBegin = "id=\"nanotrace\">", kDataEnd = "</script>";

Json work_json(const TraceSummary& summary, const WorkTimes& work) {
  return Json::object({{"ops", work.ops},
                       {"calls", work.calls},
                       {"busy", summary.busy(work)},
                       {"late", work.late},
                       {"path", work.path},
                       {"bytes", work.bytes},
                       {"flops", work.flops}});
}

// Figures that the script shows but does not compute.
std::string summary_json(const Timeline& timeline) {
  const TraceSummary summary = summarise(timeline);
  Json json = Json::object({{"executor", timeline.executor},
                            {"steps", summary.steps},
                            {"workers", summary.workers},
                            {"units", summary.units},
                            {"begin", summary.begin},
                            {"end", summary.end},
                            {"step", summary.step},
                            {"lost", summary.lost},
                            {"work", Json::array()},
                            {"idle", Json::array()},
                            {"path", Json::array()},
                            {"bodies", Json::array()}});
  for (const WorkTimes& work : summary.work) {
    json["work"].push_back(work_json(summary, work))["op"] = work.op;
  }
  json["total"] = work_json(summary, summary.total());
  for (const IdleCause& cause : idle_causes(summary))
    json["idle"].push_back(
        Json::object({{"name", cause.name}, {"meaning", cause.meaning}, {"ns", cause.ns}}));
  for (const std::string& body : summary.bodies) json["bodies"].push_back(body);
  for (const PathStep& step : summary.path)
    json["path"].push_back(Json::array({step.by.lane, step.by.event, step.begin}));
  return json_in_page(json);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Joins the text of all parts with an ending.
std::string parts(std::string_view ending) {
  std::string text;
  for (const EmbeddedFile& source : page_sources())
    if (source.path.ends_with(ending)) text += source.text;
  return text;
}

// The elements that the script reads. The first one's have no number.
std::string data_of(const Timeline& timeline, size_t number) {
  const std::string suffix = number > 0 ? fmt::format("-{}", number) : "";
  return fmt::format(
      "<script type=\"application/json\" id=\"summary{0}\">{1}</script>\n"
      "<script type=\"text/plain\" id=\"nanotrace{0}\">{2}</script>\n",
      suffix, summary_json(timeline), to_base64(serialise_nanotrace(to_nanotrace(timeline))));
}

}  // namespace

std::string timeline_page(const Timeline& timeline) {
  return timelines_page(timeline.name, std::span(&timeline, 1));
}

std::string timelines_page(const std::string& title, std::span<const Timeline> timelines) {
  std::string data;
  for (size_t i = 0; i < timelines.size(); ++i) data += data_of(timelines[i], i);
  return fill_frame(
      parts(".html"),
      {{"title", escaped(title)}, {"style", parts(".css")}, {"script", parts(".js")}, {"data", data}});
}

bool is_timeline_page(std::string_view bytes) {
  return bytes.substr(0, 1024).find(kPageMark) != bytes.npos;
}

std::string nanotrace_of_page(std::string_view page, const std::string& where) {
  const size_t mark = page.find(kDataBegin);
  const size_t begin = mark + kDataBegin.size(), end = mark == page.npos ? mark : page.find(kDataEnd, begin);
  if (end == page.npos) fail(ErrorCode::kIo, "[{}] a page without its trace; it was cut or changed", where);
  auto bytes = from_base64(page.substr(begin, end - begin));
  if (!bytes) fail(ErrorCode::kIo, "[{}] the trace in this page is not base64; it was changed", where);
  return std::move(*bytes);
}

}  // namespace heddle
