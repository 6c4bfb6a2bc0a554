#pragma once
// What the public Model and Session hold.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "chat/chat_template.h"
#include "doppler/doppler.h"
#include "engine/backend.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace doppler {

struct ModelState {
  ModelInfo info;
  Precision precision = Precision::kFast;
  std::unique_ptr<TensorSource> text_source;  // LoadParts::kTokenizer: the file without its graph
  model::LoadedModel model;
  Backend backend;                   // uses `model`: goes first
  std::unique_ptr<KvCache> text_kv;  // embedders: of the text in work, under `run`; uses `backend`

  std::mutex run;        // one forward pass at a time
  std::mutex text_side;  // the two below are made when first needed
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;

  Result<const Tokenizer*> get_tokenizer();
  Result<const ChatTemplate*> get_chat();
};

struct SessionState {
  std::shared_ptr<ModelState> model;
  std::unique_ptr<KvCache> kv;  // uses the model's executor: goes first
  std::atomic<bool> cancel = false;
};

}  // namespace doppler
