#pragma once
// A model on the CPU, or on a GPU, with one sequence, for tests.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "exec/gpu/gpu_executor.h"
#include "gpu/device.h"
#include "model/model.h"

namespace doppler::test {

template <class T>
T take(Result<T> result) {
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().message));
  return std::move(*result);
}

inline int32_t arg_max(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline std::vector<double> log_softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - largest);
  std::vector<double> out(logits.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = logits[i] - largest - std::log(sum);
  return out;
}

class Runner {
 public:
  /// `device`: nullptr for the CPU.
  Runner(const std::string& path, Precision precision, KvType kv_type = KvType::kF32, uint32_t context = 2048,
         std::shared_ptr<gpu::Device> device = nullptr)
      : model_(take(model::open_model(path))),
        executor_(take(device ? make_gpu_executor(std::move(device), model_.graph, *model_.weights,
                                                  {.precision = precision, .max_chunk = 512})
                              : make_cpu_executor(model_.graph, *model_.weights, {precision, 0, 512}))),
        kv_type_(kv_type),
        context_(context) {
    restart();
  }

  void restart() { kv_ = take(executor_->make_kv(context_, kv_type_)); }

  /// Feeds `ids` in chunks; the last row's logits.
  std::vector<float> feed(std::span<const int32_t> ids, size_t chunk = 512) {
    std::vector<float> logits(vocab());
    for (size_t i = 0; i < ids.size(); i += chunk) {
      const auto part = ids.subspan(i, std::min(chunk, ids.size() - i));
      const bool last = i + part.size() == ids.size();
      const auto done = executor_->forward(*kv_, part, last ? LogitRows::kLast : LogitRows::kNone,
                                           last ? std::span<float>(logits) : std::span<float>());
      REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
    }
    return logits;
  }

  /// Greedy ids after a prompt, up to `count`; stops after an end id. Logits of each step go to `seen`.
  std::vector<int32_t> greedy(std::span<const int32_t> prompt, size_t count, size_t chunk = 512,
                              std::vector<std::vector<float>>* seen = nullptr) {
    restart();
    std::vector<int32_t> out;
    std::vector<float> logits = feed(prompt, chunk);
    while (true) {
      if (seen) seen->push_back(logits);
      out.push_back(arg_max(logits));
      const auto& ends = model_.config.end_ids;
      if (out.size() == count || std::find(ends.begin(), ends.end(), out.back()) != ends.end()) return out;
      logits = feed(std::span(&out.back(), 1), 1);
    }
  }

  const model::LoadedModel& model() const { return model_; }
  Executor& executor() { return *executor_; }
  KvCache& kv() { return *kv_; }
  uint32_t vocab() const { return model_.graph.logits.width; }

 private:
  model::LoadedModel model_;
  std::unique_ptr<Executor> executor_;
  KvType kv_type_;
  uint32_t context_;
  std::unique_ptr<KvCache> kv_;
};

}  // namespace doppler::test
