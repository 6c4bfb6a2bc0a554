#pragma once
// Doppler: runs language and embedding models through WebGPU and on the CPU.
//
//   auto model = doppler::Model::load("model.gguf");
//   if (!model) { std::fprintf(stderr, "%s\n", model.error().message.c_str()); return 1; }
//   auto session = model->new_session();
//   doppler::GenerateCallbacks callbacks;
//   callbacks.on_text = [](std::string_view text) { std::cout << text << std::flush; return true; };
//   auto result = session->generate("The capital of France is", {}, callbacks);
//
// What can fail on input returns Result<T>; nothing throws and nothing aborts the process.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/generate.h"
#include "doppler/types.h"

namespace doppler {

/// "0.1.0"
std::string_view version();

enum class LoadParts {
  kAll,
  kTokenizer,  // encode and decode only: no weights, no device
  kWeights,    // the tokenizer is read when something first needs it
};

struct LoadOptions {
  /// "auto": a hardware GPU, else the CPU. "cpu". "gpu": a hardware GPU or an error. "lavapipe",
  /// "swiftshader": that software driver. Anything else: an adapter's index or a part of its name, as
  /// `doppler devices` lists them.
  std::string device = "auto";
  Precision precision = Precision::kFast;
  unsigned threads = 0;    // of the CPU; 0: the cores this process may use
  uint32_t max_chunk = 0;  // most prompt tokens a forward pass; 0: 512
  /// Most bytes of a mixture's experts on the GPU: they are loaded from the file as they are asked for. 0:
  /// all are there. On the CPU without effect: there they are read where the file is mapped.
  uint64_t expert_memory_bytes = 0;
  LoadParts parts = LoadParts::kAll;
  Progress progress;  // of a download and of the upload to a device
};

struct ModelInfo {
  std::string name;    // as the file gives it
  std::string family;  // "llama", "gemma3"
  std::string path;
  std::string device;  // what runs it
  bool on_gpu = false;
  std::string device_reason;  // why that device
  uint32_t vocab = 0;
  uint32_t max_context = 0;  // positions the model was made for
  std::vector<int32_t> end_ids;
  uint32_t embedding_width = 0;  // numbers of an embedding; 0: the model generates text
  /// An embedder: a text of more token ids loses its end. All go through in one pass: LoadOptions::max_chunk
  /// lowers what the model takes; without it 8192 is the most.
  uint32_t max_text_ids = 0;
  double load_ms = 0;
};

struct TextOptions {
  bool add_bos = true;         // as the model's own rule says; false: never
  bool parse_special = false;  // text that spells a control token becomes it
};

struct SessionOptions {
  uint32_t context = 0;      // positions; 0: the model's own
  std::optional<KvType> kv;  // unset: f16, and f32 with Precision::kExact
};

/// What an embedder makes of one text.
struct Embedding {
  std::vector<int32_t> ids;   // what went through, with what the model adds ([CLS] and [SEP], an end token)
  std::vector<float> values;  // [info().embedding_width], of length 1 where the model normalises
  bool truncated = false;     // the text had more ids than info().max_text_ids: it lost its end
};

class Session;
struct ModelState;
struct SessionState;

/// A loaded model. Copies share it; it lives as long as the last copy or session. Its methods may be called
/// from several threads; generations on one model run one after the other.
class Model {
 public:
  /// `model` is a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name, which is
  /// downloaded if it is not in the cache.
  static Result<Model> load(std::string_view model, const LoadOptions& options = {});

  const ModelInfo& info() const;
  uint64_t device_bytes() const;  // memory taken on the device: weights and activations

  /// Text to ids. Errors: the model's tokenizer cannot be read.
  Result<std::vector<int32_t>> encode(std::string_view text, const TextOptions& options = {}) const;

  /// The prompt's ids through the model's chat template, the assistant's turn opened. What the messages
  /// contain is text, whatever it spells. Errors (kUnsupported): no template, or one that is not built in.
  Result<std::vector<int32_t>> encode_chat(std::span<const ChatMessage> messages) const;

  /// Ids to text; control tokens are left out unless `special`. Errors: an id outside the vocabulary.
  Result<std::string> decode(std::span<const int32_t> ids, bool special = false) const;

  /// The text that each id stands for, as the vocabulary spells it.
  Result<std::vector<std::string>> token_texts(std::span<const int32_t> ids) const;

  /// The embedding of one text, pooled and normalised as the model's files say. Every text is valid, also the
  /// empty one, as long as the tokenizer gives at least one id. Errors (kBadInput): a model that generates
  /// text; a text without ids. Others: the device's.
  Result<Embedding> embed(std::string_view text) const;

  /// The same for token ids, nothing added; at most info().max_text_ids. Errors also: ids outside the
  /// vocabulary, none, or too many.
  Result<std::vector<float>> embed(std::span<const int32_t> ids) const;

  /// Errors: an embedder, a context beyond the model's own, or memory for its cache.
  Result<Session> new_session(const SessionOptions& options = {}) const;

 private:
  friend class Session;
  explicit Model(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}
  std::shared_ptr<ModelState> state_;
};

/// One sequence's cache on a model. Each generate() starts anew.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Continues a text, a chat, or ids. A failure before the first token is an error; a later one is a
  /// Generation with FinishReason::kError that holds what there is.
  Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                              const GenerateCallbacks& callbacks = {});
  Result<Generation> generate(std::span<const ChatMessage> messages, const GenerateOptions& options = {},
                              const GenerateCallbacks& callbacks = {});
  Result<Generation> generate(std::span<const int32_t> prompt_ids, const GenerateOptions& options = {},
                              const GenerateCallbacks& callbacks = {});

  /// Stops the generate() that is running in another thread, before its next step; no effect on later ones.
  void cancel();

  uint32_t context() const;      // positions
  uint64_t cache_bytes() const;  // memory the cache takes now

 private:
  friend class Model;
  explicit Session(std::unique_ptr<SessionState> state);
  std::unique_ptr<SessionState> state_;
};

}  // namespace doppler
