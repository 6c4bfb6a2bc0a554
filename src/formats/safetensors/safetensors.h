#pragma once
// Safetensors files (github.com/huggingface/safetensors): a JSON header, then the tensors' bytes. A Hugging
// Face folder holds one, or several that an index file lists.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "formats/tensor_source.h"

namespace doppler::safetensors {

/// A file's header, read and checked.
struct Header {
  std::vector<TensorInfo> tensors;  // sorted by name; offsets count from the start of the file
};

/// Reads the header of a file. Errors, each one line that names the tensor: a length beyond the file or 100
/// MB, JSON that is not an object of tensors, a name twice, a type that has no place here (F8, F4), a shape
/// whose bytes are not those of the offsets, offsets beyond the file, tensors that overlap.
Result<Header> read_header(const ByteSource& file);

class SafetensorsFolder final : public TensorSource {
 public:
  /// Opens DIRECTORY/model.safetensors.index.json with the files it names, else DIRECTORY/model.safetensors,
  /// else the only *.safetensors file there is. Errors: none of them, read_header()'s, a file that is
  /// missing, a name that leaves the directory, a tensor in two files, or one that the index places where it
  /// is not.
  static Result<std::unique_ptr<SafetensorsFolder>> open(const std::string& directory);

  const std::string& path() const override { return path_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;
  Result<TensorBytes> bytes(const TensorInfo& tensor) const override;
  void release(const TensorInfo& tensor) const override;
  size_t file_count() const { return files_.size(); }

 private:
  Result<void> add_file(const std::string& name);
  size_t file_of(const TensorInfo& tensor) const;

  std::string path_;
  std::vector<std::unique_ptr<ByteSource>> files_;
  std::vector<uint64_t> bases_;  // where each file starts in the concatenation of all
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// True if `directory` holds config.json and safetensors files: a Hugging Face folder.
bool is_hugging_face_folder(const std::string& directory);

}  // namespace doppler::safetensors
