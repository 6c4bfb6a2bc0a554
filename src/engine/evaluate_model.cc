#include "engine/evaluate_model.h"

#include "pipelines/text/text_files.h"
#include "storage/pull.h"

namespace doppler {

Result<EvaluateReport> evaluate_model(const EvaluateRequest& request) {
  DOPPLER_TRY(const std::string path, storage::resolve_or_pull(request.model, request.progress));
  DOPPLER_TRY(const model::LoadedModel model, model::open_model(path));
  if (model.graph.embedder)
    return fail(ErrorCode::kBadInput, "[eval] a model that generates text wanted, {} makes embeddings",
                request.model);
  DOPPLER_TRY(const auto tokenizer, tokenizer_of(*model.source, path));
  const auto ids = tokenizer->encode(request.text, {.bos = BosRule::kModel, .parse_special = false});

  EvaluateReport report;
  report.tokens = ids.size();
  DOPPLER_TRY(const Backend main, make_backend(model, request.backend));
  report.device = main.executor->device_name();
  Backend exact;
  if (request.against_exact) {
    BackendOptions options = request.backend;
    options.precision = Precision::kExact;
    DOPPLER_TRY(exact, make_backend(model, options));
  }
  EvalOptions options;
  options.window = request.window;
  options.max_windows = request.max_windows;
  options.chunk = request.chunk;
  if (tokenizer->vocab().add_bos) options.bos = tokenizer->bos();
  options.kv =
      request.kv.value_or(request.backend.precision == Precision::kExact ? KvType::kF32 : KvType::kF16);
  DOPPLER_TRY(report.result, evaluate(*main.executor, exact.executor.get(), model.config.vocab, ids, options,
                                      request.progress));
  return report;
}

}  // namespace doppler
