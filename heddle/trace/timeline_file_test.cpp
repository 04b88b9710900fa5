#include "heddle/trace/timeline_file.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/trace/page.h"
#include "heddle/trace/test_timelines.h"

namespace heddle {
namespace {

Timeline full_timeline() {
  Timeline timeline = two_workers();
  timeline.calls[1].body = "use_kernel.sm90 (rows=64), 8 CTAs of 128 threads";
  timeline.workers[1].stream.push_back({.signal = 7});  // without work
  timeline.trace.lanes[1].events.push_back({3100, 3100, 3100, 3150, 0, 1, 2});
  timeline.trace.lanes[1].events.push_back(
      {.fetched = 3160, .ready = 3170, .computed = 3180, .done = 3190, .epoch = 3, .dead = 1});
  timeline.trace.lanes[1].lost = 4;
  timeline.trace.lanes.push_back(
      {.worker = 1, .role = TraceRole::kLoader, .unit = 1, .events = {{10, 20, 90, 90, 0, 0, 1}}});
  return timeline;
}

void expect_equal(const Timeline& a, const Timeline& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.executor, b.executor);
  EXPECT_EQ(a.ops, b.ops);
  ASSERT_EQ(a.calls.size(), b.calls.size());
  for (size_t i = 0; i < a.calls.size(); ++i) {
    EXPECT_EQ(a.calls[i].op, b.calls[i].op);
    EXPECT_EQ(a.calls[i].node, b.calls[i].node);
    EXPECT_EQ(a.calls[i].body, b.calls[i].body);
  }
  ASSERT_EQ(a.workers.size(), b.workers.size());
  for (size_t w = 0; w < a.workers.size(); ++w) {
    EXPECT_EQ(a.workers[w].unit, b.workers[w].unit);
    EXPECT_EQ(a.workers[w].stream, b.workers[w].stream);
  }
  ASSERT_EQ(a.trace.lanes.size(), b.trace.lanes.size());
  for (size_t l = 0; l < a.trace.lanes.size(); ++l) {
    const TraceLane &x = a.trace.lanes[l], &y = b.trace.lanes[l];
    EXPECT_EQ(x.worker, y.worker);
    EXPECT_EQ(x.role, y.role);
    EXPECT_EQ(x.unit, y.unit);
    EXPECT_EQ(x.lost, y.lost);
    ASSERT_EQ(x.events.size(), y.events.size());
    for (size_t e = 0; e < x.events.size(); ++e)
      EXPECT_EQ(std::memcmp(&x.events[e], &y.events[e], sizeof(TraceEvent)), 0) << l << " " << e;
  }
}

TEST(TimelineFile, HoldsAllOfATimeline) {
  const Timeline timeline = full_timeline();
  const std::string file = serialise_nanotrace(to_nanotrace(timeline));
  expect_equal(parse_timeline(file, "here"), timeline);
  EXPECT_EQ(serialise_nanotrace(to_nanotrace(parse_timeline(file, "here"))), file);
}

TEST(TimelineFile, ReadsTablesWithoutBodies) {
  const Timeline timeline = two_workers();
  Nanotrace trace = to_nanotrace(timeline);
  trace.rest.at(7) = 1;
  for (const TimelineCall& call : timeline.calls)  // an empty body is its length, two bytes after the node
    trace.rest.erase(trace.rest.find(call.node) + call.node.size(), 2);
  expect_equal(parse_timeline(serialise_nanotrace(trace), "here"), timeline);
  trace.rest.at(7) = 3;
  EXPECT_THROW(parse_timeline(serialise_nanotrace(trace), "here"), Error);
}

TEST(TimelineFile, IsAPageToo) {
  const Timeline timeline = full_timeline();
  const std::string page = timeline_page(timeline);
  EXPECT_EQ(page.find("two <workers>"), std::string::npos) << "names are escaped";
  EXPECT_NE(page.find("two &lt;workers>"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos) << "it loads nothing";
  expect_equal(parse_timeline(page, "here"), timeline);
  EXPECT_THROW(parse_timeline(page.substr(0, page.find("id=\"nanotrace\"")), "here"), Error);
  std::string changed = page;
  changed[page.find("id=\"nanotrace\">") + 20] = '!';
  EXPECT_THROW(parse_timeline(changed, "here"), Error);
}

TEST(TimelineFile, ViewersOfVersion1SeeWaitsWorkAndPublications) {
  const Nanotrace trace = to_nanotrace(full_timeline());
  std::vector<std::string> labels;
  for (const Nanotrace::Event& event : trace.tracks[1].events)
    labels.push_back(trace.formats[event.format].label);
  EXPECT_EQ(labels, (std::vector<std::string>{"wait", "use more", "publish", "wait", "use more", "publish",
                                              "no work", "publish", "wait", "no work", "publish"}));
  EXPECT_EQ(trace.formats[trace.tracks[2].format].label, "loader");
}

TEST(TimelineFile, TakesTracesOfOthers) {
  Nanotrace other{.name = "kernel", .formats = {{"block", "", 0}, {"lane", "", 0}, {"load", "", 1}}};
  other.blocks = {{0, 0, 3, 0}};
  other.tracks = {
      {.block = 0, .format = 1, .lane = 0, .params = {8}, .events = {{50, 20, 2, 0}}},
      {.block = 0, .format = 1, .lane = 1, .params = {9}, .events = {{60, 30, 2, 0}, {95, 5, 1, 1}}}};
  const Timeline timeline = parse_timeline(serialise_nanotrace(other), "here");
  EXPECT_EQ(timeline.workers.size(), 2u) << "a track each";
  ASSERT_EQ(timeline.trace.lanes[1].events.size(), 2u);
  const TraceLane& lane = timeline.trace.lanes[1];
  EXPECT_EQ(timeline.ops[timeline.calls[timeline.at(lane, lane.events[0]).call].op], "load");
  EXPECT_EQ(lane.events[0].done, 90u);
  EXPECT_FALSE(timeline_page(timeline).empty());
}

TEST(TimelineFile, RefusesATableThatDoesNotFit) {
  const Nanotrace good = to_nanotrace(full_timeline());
  const auto refused = [&](auto&& change) {
    Nanotrace trace = good;
    for (Nanotrace::Track& track : trace.tracks)
      track.params.resize(track.params.size() + 8);  // for all formats
    change(trace);
    EXPECT_THROW(parse_timeline(serialise_nanotrace(trace), "here"), Error);
  };
  refused([](Nanotrace& t) { t.rest.pop_back(); });
  refused([](Nanotrace& t) { t.rest.push_back(0); });
  refused([](Nanotrace& t) { t.tracks[0].params[0] = 9; });            // instruction
  refused([](Nanotrace& t) { t.tracks[0].params[2] = 5000; });         // starved for longer than it ran
  refused([](Nanotrace& t) { t.tracks[0].events[0].format += 1; });    // another op's
  refused([](Nanotrace& t) { t.tracks[1].events[0].duration += 1; });  // the wait ends in the work
  refused([](Nanotrace& t) { t.tracks[1].events.pop_back(), t.tracks[1].events[6].format = 3; });
  refused([](Nanotrace& t) { t.tracks[0].lane = 2; });
  refused([](Nanotrace& t) { t.formats[4].params = 1; });
}

TEST(TimelineFile, RefusesARunOfMoreThan32Bits) {
  Timeline timeline = two_workers();
  timeline.trace.lanes[1].events[1].done = 5'000'000'000;
  try {
    to_nanotrace(timeline);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("5.00 s; it has room for 4.29"), std::string::npos);
  }
}

TEST(TimelineFile, IsWrittenByItsEnding) {
  const auto folder = std::filesystem::temp_directory_path();
  const Timeline timeline = two_workers();
  for (const std::string ending : {".nanotrace", ".html"}) {
    const std::string path = (folder / ("timeline_file_test" + ending)).string();
    write_timeline(timeline, path);
    expect_equal(read_timeline(path), timeline);
    std::filesystem::remove(path);
  }
  EXPECT_THROW(write_timeline(timeline, (folder / "x.txt").string()), Error);
  EXPECT_THROW(require_timeline_path(".html"), Error);
}

}  // namespace
}  // namespace heddle
