#pragma once
// The local cache: where models lie, what is there, and what a model name means.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/catalogue.h"

namespace doppler::storage {

/// $DOPPLER_CACHE, else $XDG_CACHE_HOME/doppler, else ~/.cache/doppler. Error: none of them is known.
Result<std::string> cache_folder();

/// $DOPPLER_MODELS, else models/ in the cache folder. It may not exist yet.
Result<std::string> models_folder();

/// One line of `doppler list`: a catalogue model, present or not, or another file or folder found beside
/// them.
struct CachedModel {
  std::string name;     // the catalogue's name; the file's name for others
  std::string path;     // where it is or would be
  std::string summary;  // the catalogue's; empty for others
  uint64_t bytes = 0;   // on disk if present, else what the catalogue says
  bool present = false;
  bool in_catalogue = false;
};

/// Catalogue models in the catalogue's order, then the others by name.
Result<std::vector<CachedModel>> list_models();

/// Where the entry's file or folder is if all of it is there with its full size, else an empty string.
Result<std::string> cached_path(const CatalogueEntry& entry);

/// Turns MODEL of the command line into a path: an existing path as it is, a catalogue name, or the name of
/// something in the models folder. Error: kNotFound, with the cure (`doppler pull NAME` if that would help).
Result<std::string> resolve_model(std::string_view name_or_path);

/// Removes a catalogue model or another entry of the models folder by the name that `list_models` gives.
/// Returns the bytes freed. Error: kNotFound; kBadInput for a name that is a path.
Result<uint64_t> remove_model(std::string_view name);

}  // namespace doppler::storage
