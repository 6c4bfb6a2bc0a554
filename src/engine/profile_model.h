#pragma once
// `doppler profile`: where the time of a prompt and of one more token goes.
#include <optional>
#include <string>
#include <vector>

#include "engine/backend.h"

namespace doppler {

struct ProfileRequest {
  std::string model;  // a path or a catalogue name
  BackendOptions backend;
  std::optional<KvType> kv;  // unset: f16, f32 with exact precision
  uint32_t prompt_tokens = 512;
  uint32_t runs = 5;
};

/// All steps of a pass with the same kernel and shape.
struct ProfileLine {
  std::string kernel, shape;
  uint32_t count = 0;       // steps
  uint32_t dispatches = 0;  // of all of them; on the CPU as many as steps
  double microseconds = 0;  // of all of them; each step the median of the runs
  uint64_t bytes = 0;
  double operations = 0;

  double gb_s() const { return microseconds > 0 ? static_cast<double>(bytes) * 1e-3 / microseconds : 0; }
  double tops() const { return microseconds > 0 ? operations * 1e-6 / microseconds : 0; }
};

struct ProfilePass {
  std::vector<ProfileLine> lines;  // what takes longest first
  double step_us = 0;              // sum of the steps
  double wall_us = 0;              // of the same pass, not taken apart: median of the runs
  uint32_t dispatches = 0;
};

struct ProfileReport {
  std::string device;
  bool gpu = false;
  uint32_t prompt_tokens = 0;
  DeviceRates rates;
  ProfilePass prefill, decode;  // decode: one token after the prompt
};

/// Errors: of loading; kUnsupported on a GPU without timestamps, and for an embedder.
Result<ProfileReport> profile_model(const ProfileRequest& request);

std::string to_json(const ProfileReport& report);  // one JSON object
std::string to_text(const ProfileReport& report);

}  // namespace doppler
