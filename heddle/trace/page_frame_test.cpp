#include "heddle/trace/page_frame.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

TEST(PageFrame, FillsEveryPlaceAndNotWhatStandsInAField) {
  EXPECT_EQ(fill_frame("<a>{{x}}</a>{{y}}{{x}};", {{"x", "{{y}}"}, {"y", "2"}}), "<a>{{y}}</a>2{{y}};");
}

TEST(PageFrame, WantsAFieldForEachPlace) {
  EXPECT_THROW(fill_frame("{{x}}{{y}}", {{"x", "1"}}), Error);
  EXPECT_THROW(fill_frame("{{x", {{"x", "1"}}), Error);
}

TEST(PageFrame, HasNoTextThatEndsTheScriptOfItsData) {
  const Json json = Json::object({{"name", "</script><!--"}});
  const std::string text = json_in_page(json);
  EXPECT_EQ(text.find('<'), text.npos) << text;
  EXPECT_EQ(parse_json(text, "page"), json);
}

}  // namespace
}  // namespace heddle
