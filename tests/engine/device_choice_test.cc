#include "engine/device_choice.h"

#include <doctest/doctest.h>

using namespace doppler;

namespace {

gpu::AdapterInfo adapter(const char* name, bool hardware, bool unified) {
  gpu::AdapterInfo info;
  info.caps.adapter = name;
  info.caps.hardware = hardware;
  info.caps.unified_memory = unified;
  return info;
}

using Adapters = Result<std::vector<gpu::AdapterInfo>>;

}  // namespace

TEST_CASE("auto takes hardware, a discrete GPU first, and says why") {
  const auto choice =
      choose_device("auto", Adapters({adapter("llvmpipe", false, true), adapter("Iris", true, true),
                                      adapter("RTX", true, false)}))
          .value();
  CHECK(choice.gpu);
  CHECK(choice.adapter == "2");
  CHECK(choice.may_fall_back);
  CHECK(choice.reason.find("RTX") != std::string::npos);
  CHECK(choose_device("auto", Adapters({adapter("Iris", true, true)})).value().adapter == "0");
}

TEST_CASE("auto never takes software by itself") {
  const auto choice = choose_device("auto", Adapters({adapter("llvmpipe", false, true)})).value();
  CHECK_FALSE(choice.gpu);
  CHECK(choice.reason.find("llvmpipe") != std::string::npos);
  const auto none = choose_device("auto", Adapters(std::vector<gpu::AdapterInfo>())).value();
  CHECK_FALSE(none.gpu);
  const auto broken = choose_device("auto", Adapters(fail(ErrorCode::kNotFound, "[gpu] no library"))).value();
  CHECK_FALSE(broken.gpu);
  CHECK(broken.reason.find("no library") != std::string::npos);
}

TEST_CASE("gpu is hardware or an error with a cure") {
  CHECK(choose_device("gpu", Adapters({adapter("RTX", true, false)})).value().gpu);
  const auto none = choose_device("gpu", Adapters({adapter("llvmpipe", false, true)}));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == ErrorCode::kNotFound);
  CHECK(none.error().message.find("--device cpu") != std::string::npos);
}

TEST_CASE("cpu and names need no adapters") {
  CHECK_FALSE(choose_device("cpu").value().gpu);
  const auto named = choose_device("lavapipe").value();
  CHECK(named.gpu);
  CHECK(named.adapter == "lavapipe");
  CHECK_FALSE(named.may_fall_back);
  CHECK_FALSE(choose_device("").has_value());
}
