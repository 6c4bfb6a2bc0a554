// A profile as people and programs read it.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/profile_model.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBar = 20;

std::string bar(double share) {
  const int filled = std::clamp(static_cast<int>(share * kBar + 0.5), 0, kBar);
  return std::string(static_cast<size_t>(filled), '#') + std::string(static_cast<size_t>(kBar - filled), '.');
}

std::string percent_of(double value, double limit) {
  return limit > 0 ? fmt::format("{:4.0f} %", 100 * value / limit) : "";
}

void append(std::string& out, const ProfilePass& pass, const DeviceRates& rates) {
  out += fmt::format("  {:<20} {:>9} {:>6}  {:<36} {:<26} {:>7} {:>6} {:>7} {:>6}\n", "share of the time",
                     "us", "steps", "kernel", "shape", "GB/s", "limit", "TOPS", "limit");
  for (const ProfileLine& line : pass.lines)
    out += fmt::format("  {} {:9.1f} {:6}  {:<36} {:<26} {:7.0f} {:>6} {:7.2f} {:>6}\n",
                       bar(pass.step_us > 0 ? line.microseconds / pass.step_us : 0), line.microseconds,
                       line.count, line.kernel, line.shape, line.gb_s(),
                       percent_of(line.gb_s(), rates.read_gb_s), line.tops(),
                       percent_of(line.tops(), rates.int8_tops));
}

Json pass_json(const ProfilePass& pass) {
  Json lines = Json::array();
  for (const ProfileLine& line : pass.lines)
    lines.push_back({{"kernel", line.kernel},
                     {"shape", line.shape},
                     {"steps", line.count},
                     {"dispatches", line.dispatches},
                     {"microseconds", line.microseconds},
                     {"bytes", line.bytes},
                     {"operations", line.operations},
                     {"gb_s", line.gb_s()},
                     {"tops", line.tops()}});
  return {{"wall_us", pass.wall_us},
          {"step_us", pass.step_us},
          {"dispatches", pass.dispatches},
          {"kernels", std::move(lines)}};
}

}  // namespace

std::string to_json(const ProfileReport& report) {
  const Json out = {{"device", report.device},
                    {"gpu", report.gpu},
                    {"prompt_tokens", report.prompt_tokens},
                    {"read_gb_s", report.rates.read_gb_s},
                    {"int8_tops", report.rates.int8_tops},
                    {"prefill", pass_json(report.prefill)},
                    {"decode", pass_json(report.decode)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const ProfileReport& report) {
  std::string out = fmt::format("{}: reads {:.0f} GB/s", report.device, report.rates.read_gb_s);
  if (report.rates.int8_tops > 0) out += fmt::format(", {:.1f} int8 TOPS", report.rates.int8_tops);
  const std::string_view what = report.gpu ? "dispatches" : "nodes";
  const auto head = [&](std::string_view name, const ProfilePass& pass) {
    out += fmt::format("\n{}: {:.0f} us ({:.0f} us in {} {})\n", name, pass.wall_us, pass.step_us,
                       pass.dispatches, what);
    append(out, pass, report.rates);
  };
  head(fmt::format("prefill of {} tokens", report.prompt_tokens), report.prefill);
  head("decode of one token", report.decode);
  return out;
}

}  // namespace doppler
