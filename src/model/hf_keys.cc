#include "model/hf_keys.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "base/text.h"

namespace doppler::model {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxBytes = 16u << 20;

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

struct HfKeys::Data {
  std::string path;
  std::shared_ptr<const Json> root;  // keeps `object` alive
  const Json* object = nullptr;

  const Json* find(std::string_view key) const {
    const auto found = object->find(std::string(key));
    return found == object->end() || found->is_null() ? nullptr : &*found;
  }
  tl::unexpected<Error> wrong(std::string_view key, std::string_view wanted, const Json& got) const {
    return fail(ErrorCode::kBadFile, "[model] {}: {} as {} wanted, got {}", path, key, wanted, shown(got));
  }
};

Result<HfKeys> HfKeys::read(const std::string& path) {
  DOPPLER_TRY(const std::string text, read_text_file(path, kMaxBytes));
  return parse(text, path);
}

Result<HfKeys> HfKeys::parse(std::string_view text, std::string path) {
  auto json = std::make_shared<const Json>(Json::parse(text, nullptr, false));
  if (!json->is_object())
    return fail(ErrorCode::kBadFile, "[model] {}: a JSON object wanted, got something else", path);
  auto data = std::make_shared<Data>();
  data->path = std::move(path);
  data->object = json.get();
  data->root = std::move(json);
  return HfKeys(std::move(data));
}

const std::string& HfKeys::path() const { return data_->path; }

bool HfKeys::has(std::string_view key) const { return data_->find(key) != nullptr; }

std::optional<HfKeys> HfKeys::child(std::string_view key) const {
  const Json* found = data_->find(key);
  if (!found || !found->is_object()) return std::nullopt;
  auto data = std::make_shared<Data>(*data_);
  data->object = found;
  return HfKeys(std::move(data));
}

Result<std::optional<uint32_t>> HfKeys::find_count(std::string_view key, uint64_t least,
                                                   uint64_t most) const {
  const Json* found = data_->find(key);
  if (!found) return std::optional<uint32_t>();
  if (!found->is_number_unsigned() || found->get<uint64_t>() < least || found->get<uint64_t>() > most)
    return data_->wrong(key, fmt::format("a whole number from {} to {}", least, most), *found);
  return std::optional<uint32_t>(static_cast<uint32_t>(found->get<uint64_t>()));
}

Result<uint32_t> HfKeys::count(std::string_view key, uint64_t least, uint64_t most) const {
  DOPPLER_TRY(const std::optional<uint32_t> value, find_count(key, least, most));
  if (!value) return fail(ErrorCode::kBadFile, "[model] {}: {} wanted, it has none", data_->path, key);
  return *value;
}

Result<std::optional<float>> HfKeys::find_number(std::string_view key, double least, double most) const {
  const Json* found = data_->find(key);
  if (!found) return std::optional<float>();
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (!(value >= least && value <= most))  // NaN fails too
    return data_->wrong(key, fmt::format("a number from {} to {}", least, most), *found);
  return std::optional<float>(static_cast<float>(value));
}

Result<bool> HfKeys::flag(std::string_view key, bool otherwise) const {
  const Json* found = data_->find(key);
  if (!found) return otherwise;
  if (!found->is_boolean()) return data_->wrong(key, "true or false", *found);
  return found->get<bool>();
}

Result<std::string> HfKeys::text(std::string_view key) const {
  const Json* found = data_->find(key);
  if (!found) return std::string();
  if (!found->is_string()) return data_->wrong(key, "text", *found);
  return found->get<std::string>();
}

Result<std::vector<std::string>> HfKeys::texts(std::string_view key) const {
  std::vector<std::string> list;
  const Json* found = data_->find(key);
  if (!found) return list;
  if (!found->is_array()) return data_->wrong(key, "a list of texts", *found);
  for (const Json& entry : *found) {
    if (!entry.is_string()) return data_->wrong(key, "a list of texts", entry);
    list.push_back(entry.get<std::string>());
  }
  return list;
}

Result<std::vector<float>> HfKeys::numbers(std::string_view key) const {
  std::vector<float> list;
  const Json* found = data_->find(key);
  if (!found) return list;
  if (!found->is_array()) return data_->wrong(key, "a list of numbers", *found);
  for (const Json& entry : *found) {
    const double value = entry.is_number() ? entry.get<double>() : NAN;
    if (!std::isfinite(value)) return data_->wrong(key, "a list of numbers", entry);
    list.push_back(static_cast<float>(value));
  }
  return list;
}

Result<std::vector<int64_t>> HfKeys::whole_numbers(std::string_view key) const {
  std::vector<int64_t> list;
  const Json* found = data_->find(key);
  if (!found) return list;
  const auto add = [&](const Json& entry) {
    if (!entry.is_number_integer()) return false;
    list.push_back(entry.get<int64_t>());
    return true;
  };
  bool ok = true;
  if (found->is_array())
    for (const Json& entry : *found) ok = ok && add(entry);
  else
    ok = add(*found);
  if (!ok) return data_->wrong(key, "whole numbers", *found);
  return list;
}

}  // namespace doppler::model
