#include "graph/graph.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace doppler::test {
namespace {

TEST_CASE("every op has a name of its own") {
  std::set<std::string_view> names;
  size_t count = 0;
  for (auto op = static_cast<uint8_t>(graph::Op::kEmbed); op <= static_cast<uint8_t>(graph::Op::kSoftcap);
       ++op) {
    names.insert(graph::op_name(static_cast<graph::Op>(op)));
    ++count;
  }
  CHECK(names.size() == count);
  CHECK_FALSE(names.contains("?"));
}

}  // namespace
}  // namespace doppler::test
