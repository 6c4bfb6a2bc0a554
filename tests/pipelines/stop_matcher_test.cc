#include "pipelines/text/stop_matcher.h"

#include <doctest/doctest.h>

using namespace doppler;

namespace {

struct Outcome {
  std::string text;
  bool stopped;
};

/// Feeds `text` in pieces of `size` bytes.
Outcome feed(std::vector<std::string> stops, std::string_view text, size_t size) {
  StopMatcher matcher(std::move(stops));
  std::string out;
  for (size_t i = 0; i < text.size(); i += size) out += matcher.push(text.substr(i, size));
  out += matcher.finish();
  return {out, matcher.stopped()};
}

}  // namespace

TEST_CASE("stop strings give the same text however the stream is cut") {
  const std::string_view text = "4, 5, 6, 7, 8, 9";
  for (size_t size = 1; size <= text.size(); ++size) {
    CAPTURE(size);
    CHECK(feed({", 7, 8"}, text, size).text == "4, 5, 6");
    CHECK(feed({", 7, 9"}, text, size).text == text);
    CHECK_FALSE(feed({", 7, 9"}, text, size).stopped);
    CHECK(feed({"7"}, text, size).text == "4, 5, 6, ");
    CHECK(feed({"8", ", 7, 8, 9, 10", "6, 7"}, text, size).text == "4, 5, ");
    CHECK(feed({}, text, size).text == text);
  }
}

TEST_CASE("the stop that is complete first wins, the longest of those that are complete at once") {
  for (size_t size = 1; size <= 8; ++size) {
    CAPTURE(size);
    CHECK(feed({"abcd", "bc"}, "xabcdx", size).text == "xa");
    CHECK(feed({"d", "bcd"}, "xabcdx", size).text == "xa");
    CHECK(feed({"aab"}, "aaab", size).text == "a");  // a false start inside the held text
    CHECK(feed({"abab"}, "ababab", size).text == "");
  }
}

TEST_CASE("nothing of a possible stop leaves early, and what was held is given once at the end") {
  StopMatcher matcher({"<end>"});
  CHECK(matcher.push("hello <e") == "hello ");
  CHECK(matcher.push("n") == "");
  CHECK(matcher.push("x") == "<enx");
  CHECK(matcher.push("<end") == "");
  CHECK(matcher.finish() == "<end");
  CHECK(matcher.finish() == "");
}

TEST_CASE("after the stop everything is dropped") {
  StopMatcher matcher({"stop"});
  CHECK(matcher.push("a stop b") == "a ");
  CHECK(matcher.stopped());
  CHECK(matcher.push("more") == "");
  CHECK(matcher.finish() == "");
}
