#include "heddle/trace/chrome.h"

#include <map>

#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/trace/test_timelines.h"

namespace heddle {
namespace {

TEST(Chrome, HasAnEventForEachWaitWorkAndPublication) {
  Timeline timeline = two_workers();
  timeline.calls[1].body = "use_kernel.sm90 (\"rows\")";
  const Json trace = parse_json(serialise_chrome(timeline), "trace");
  std::map<std::string, int> forms, names;
  double busy = 0;
  for (const Json& event : trace.at("traceEvents").items()) {
    ++forms[event.at("ph").as_string()];
    if (event.at("ph").as_string() != "X") continue;
    ++names[event.at("name").as_string()];
    if (event.at("name").as_string() != "use more") continue;
    busy += event.at("dur").as_number();
    EXPECT_EQ(event.at("tid").to_int(), 1);
    EXPECT_EQ(event.at("args").at("body").as_string(), "use_kernel.sm90 (\"rows\")");
    EXPECT_EQ(event.at("args").at("tile").size(), 4u);
  }
  const std::map<std::string, int> wanted = {{"make", 2}, {"use more", 2}, {"wait", 3}, {"publish", 3}};
  EXPECT_EQ(names, wanted);
  EXPECT_DOUBLE_EQ(busy, 1.6);  // microseconds: 900 to 1,900 and 2,300 to 2,900 ns
  EXPECT_EQ(forms["M"], 1 + 2 * 2);
  EXPECT_EQ(forms["s"], 3);  // each but the first instruction waited for the other worker's
  EXPECT_EQ(forms["f"], forms["s"]);
}

}  // namespace
}  // namespace heddle
