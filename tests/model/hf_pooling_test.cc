// sentence-transformers' files: which pooling, whether the length becomes 1, how long a text may be.
#include "model/hf_pooling.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "support/files.h"

namespace doppler::model {
namespace {

namespace fs = std::filesystem;
using test::write_text;

constexpr const char* kModules =
    R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";

struct Folder {
  test::TempDir dir;
  ModelConfig config;

  explicit Folder(Family family = Family::kBert) {
    config.family = family;
    config.max_context = 512;
    fs::create_directories(dir.path() / "1_Pooling");
  }
  Result<void> read() { return read_hf_pooling(dir.path().string(), config); }
  void modules(const std::string& text) { write_text(dir.file("modules.json"), text); }
  void pooling(const std::string& text) { write_text(dir.file("1_Pooling/config.json"), text); }
  void limits(const std::string& text) { write_text(dir.file("sentence_bert_config.json"), text); }
};

TEST_CASE("without any of the files a BERT is pooled by mean and normalised, a decoder generates") {
  Folder bert, llama(Family::kLlama);
  REQUIRE(bert.read());
  CHECK(bert.config.pooling == Pooling::kMean);
  CHECK(bert.config.normalize);
  REQUIRE(llama.read());
  CHECK(llama.config.pooling == Pooling::kNone);
  CHECK_FALSE(llama.config.normalize);
}

TEST_CASE("the modules decide") {
  Folder folder;
  folder.modules(kModules);
  folder.pooling(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  folder.limits(R"({"max_seq_length": 100, "do_lower_case": false})");
  REQUIRE(folder.read());
  CHECK(folder.config.pooling == Pooling::kFirst);
  CHECK_FALSE(folder.config.normalize);
  CHECK(folder.config.text_limit == 100);

  folder.limits(R"({"max_seq_length": null})");
  folder.pooling(R"({"pooling_mode": "lasttoken"})");
  REQUIRE(folder.read());
  CHECK(folder.config.pooling == Pooling::kLast);
  CHECK(folder.config.text_limit == 512);

  folder.limits(R"({"max_seq_length": 4000})");
  REQUIRE(folder.read());
  CHECK(folder.config.text_limit == 512);
}

TEST_CASE("what does not run or is damaged is refused by name") {
  struct Case {
    const char *modules, *pooling, *limits, *says;
  };
  for (const Case& one : {
           Case{"{}", "{}", "{}", "a list of modules"},
           Case{"[3]", "{}", "{}", "modules with type and path"},
           Case{R"([{"path": 1, "type": "x"}])", "{}", "{}", "modules with type and path"},
           Case{R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])", "{}", "{}",
                "Dense"},
           Case{R"([{"path": "../x", "type": "sentence_transformers.models.Pooling"}])", "{}", "{}",
                "a folder of this model"},
           Case{R"([{"path": "/etc", "type": "sentence_transformers.models.Pooling"}])", "{}", "{}",
                "a folder of this model"},
           Case{R"([{"path": "gone", "type": "sentence_transformers.models.Pooling"}])", "{}", "{}", "gone"},
           Case{kModules, "{}", "{}", "alone wanted"},
           Case{kModules, R"({"pooling_mode_max_tokens": true})", "{}", "alone wanted"},
           Case{kModules, R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})", "{}",
                "alone wanted"},
           Case{kModules, R"({"pooling_mode_mean_tokens": "yes"})", "{}", "true or false"},
           Case{kModules, R"({"pooling_mode_mean_tokens": true})", R"({"max_seq_length": 0})",
                "max_seq_length"},
           Case{kModules, R"({"pooling_mode_mean_tokens": true})", R"({"do_lower_case": true})",
                "do_lower_case"},
           Case{kModules, R"({"pooling_mode_mean_tokens": true})", "[1", "a JSON object"},
       }) {
    CAPTURE(one.says);
    Folder folder;
    folder.modules(one.modules);
    folder.pooling(one.pooling);
    folder.limits(one.limits);
    const auto result = folder.read();
    REQUIRE_FALSE(result);
    CHECK_MESSAGE(result.error().message.find(one.says) != std::string::npos, result.error().message);
  }
}

}  // namespace
}  // namespace doppler::model
