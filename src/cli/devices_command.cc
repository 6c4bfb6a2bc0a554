// doppler devices
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "engine/device_choice.h"
#include "gpu/device.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

Json adapter_json(size_t index, const gpu::AdapterInfo& info) {
  const gpu::Caps& c = info.caps;
  Json out = {{"index", index},
              {"name", c.adapter},
              {"driver", info.driver},
              {"backend", c.backend},
              {"library", c.library},
              {"hardware", c.hardware},
              {"unified_memory", c.unified_memory},
              {"features", {{"f16", c.f16}, {"subgroups", c.subgroups}, {"timestamps", c.timestamps}}},
              {"limits",
               {{"subgroup_size", c.subgroup_size},
                {"workgroup_invocations", c.max_workgroup_invocations},
                {"workgroup_size_x", c.max_workgroup_size_x},
                {"workgroups_per_dimension", c.max_workgroups_per_dimension},
                {"workgroup_storage_bytes", c.max_workgroup_storage_bytes},
                {"storage_buffers", c.max_storage_buffers},
                {"storage_offset_alignment", c.min_storage_offset_alignment},
                {"uniform_offset_alignment", c.min_uniform_offset_alignment},
                {"buffer_bytes", c.max_buffer_bytes},
                {"binding_bytes", c.max_binding_bytes}}}};
  if (c.subgroup_size == 0) out["limits"]["subgroup_size"] = nullptr;  // only measured once a device is made
  return out;
}

std::string adapter_text(size_t index, const gpu::AdapterInfo& info) {
  const gpu::Caps& c = info.caps;
  std::string features;
  const auto add = [&](bool has, std::string_view name) {
    if (has) features += (features.empty() ? "" : ", ") + std::string(name);
  };
  add(c.f16, "f16");
  add(c.subgroups, c.subgroup_size ? fmt::format("subgroups of {}", c.subgroup_size) : "subgroups");
  add(c.timestamps, "timestamps");
  return fmt::format(
      "{}  {}\n   {}{}, {}\n   features: {}\n   limits: buffers {}, bindings {}, workgroups of {} with {} of "
      "memory\n"
      "   library: {}\n",
      index, c.adapter, c.hardware ? "hardware" : "software",
      c.unified_memory ? ", memory shared with the CPU" : "",
      info.driver.empty() ? c.backend : c.backend + ", " + info.driver, features.empty() ? "none" : features,
      format_bytes(static_cast<double>(c.max_buffer_bytes)),
      format_bytes(static_cast<double>(c.max_binding_bytes)), c.max_workgroup_invocations,
      format_bytes(c.max_workgroup_storage_bytes), c.library);
}

int run(Program& program, bool json) {
  const auto adapters = gpu::list_adapters("");
  const auto choice = choose_device("auto", adapters);
  if (!choice) return fail_with(choice.error());
  if (json) {
    Json list = Json::array();
    if (adapters)
      for (size_t i = 0; i < adapters->size(); ++i) list.push_back(adapter_json(i, (*adapters)[i]));
    Json out = {{"adapters", std::move(list)}};
    if (!adapters) out["error"] = adapters.error().message;
    out["cpu"] = {{"threads", usable_cores()}};
    out["auto"] = {{"device", choice->gpu ? "gpu" : "cpu"}, {"reason", choice->reason}};
    if (choice->gpu) out["auto"]["index"] = std::stoi(choice->adapter);
    program.out.line(dump(out));
    return kExitOk;
  }
  std::string text;
  if (adapters) {
    for (size_t i = 0; i < adapters->size(); ++i) text += adapter_text(i, (*adapters)[i]);
  } else {
    text += adapters.error().message + "\n";
  }
  text += fmt::format("cpu  {} threads\n{}\n", usable_cores(), choice->reason);
  program.out.write(text);
  return kExitOk;
}

}  // namespace

void add_devices_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "devices", "Show the GPUs, and which device auto takes and why.",
                  "doppler devices --json");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([&program, json] { program.action = [&program, json] { return run(program, *json); }; });
}

}  // namespace doppler::cli
