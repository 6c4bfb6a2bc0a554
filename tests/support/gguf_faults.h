#pragma once
// Files that are wrong in one way each, made from a valid tiny model.
#include <cstddef>
#include <string>
#include <vector>

namespace doppler::test {

struct Fault {
  std::string name;              // as in tests/golden/bad-gguf where the same fault lies there
  std::vector<std::byte> bytes;  // of the whole file
  /// True if GgufFile::open() must refuse it; false if the container is valid and the model's configuration,
  /// weights or tokenizer are what is wrong.
  bool container = true;
};

std::vector<Fault> gguf_faults();

}  // namespace doppler::test
