#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/text.h"
#include "formats/safetensors/safetensors.h"

namespace doppler::safetensors {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxDims = 8;
constexpr int kMaxDepth = 4;  // {tensor: {shape: [..]}} needs 3

struct NamedType {
  std::string_view name;
  DType dtype;
};
// Unsigned integers share the width of the signed ones: nothing computes with them.
constexpr NamedType kTypes[] = {{"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
                                {"F64", DType::kF64}, {"U8", DType::kU8},   {"BOOL", DType::kU8},
                                {"I8", DType::kI8},   {"I16", DType::kI16}, {"U16", DType::kI16},
                                {"I32", DType::kI32}, {"U32", DType::kI32}, {"I64", DType::kI64},
                                {"U64", DType::kI64}};

class HeaderReader {
 public:
  explicit HeaderReader(const ByteSource& file) : file_(file) {}

  Result<Header> read() {
    DOPPLER_TRY(const std::string_view text, header_text());
    DOPPLER_TRY(const Json json, parse(text));
    for (const auto& [name, entry] : json.items()) {
      if (name == "__metadata__") continue;
      DOPPLER_TRY(TensorInfo info, tensor(name, entry));
      header_.tensors.push_back(std::move(info));
    }
    DOPPLER_CHECK_OK(check_overlaps());
    return std::move(header_);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kBadFile, "[safetensors] {}: {}", file_.name(),
                fmt::format(format, std::forward<Args>(args)...));
  }

  Result<std::string_view> header_text() {
    DOPPLER_TRY(const auto start, file_.view(0, std::min<uint64_t>(8, file_.size())));
    if (start.size() < 8) return bad("8 bytes of header length wanted, the file has {}", start.size());
    uint64_t length = 0;
    std::memcpy(&length, start.data(), sizeof length);
    if (length > kMaxHeaderBytes || length > file_.size() - 8)
      return bad("a header of at most {} bytes wanted, got {}; the file is cut short or no safetensors file",
                 std::min(kMaxHeaderBytes, file_.size() - 8), length);
    data_start_ = 8 + length;
    DOPPLER_TRY(const auto bytes, file_.view(8, length));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  Result<Json> parse(std::string_view text) {
    std::set<std::string> names;
    std::string twice;
    bool deep = false;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > kMaxDepth) deep = true;
      if (event == Json::parse_event_t::key && depth == 1 && twice.empty() &&
          !names.insert(parsed.get_ref<const std::string&>()).second)
        twice = parsed.get_ref<const std::string&>();
      return depth <= kMaxDepth;  // deeper values are not kept
    };
    Json json = Json::parse(text.begin(), text.end(), watch, false);
    if (json.is_discarded() || !json.is_object() || deep)
      return bad("a header that is a JSON object of tensors wanted, got something else");
    if (!twice.empty()) return bad("each tensor once wanted, got {} twice", printable(twice));
    return json;
  }

  static std::optional<uint64_t> whole(const Json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    return value.get<uint64_t>();
  }

  Result<TensorInfo> tensor(const std::string& name, const Json& entry) {
    const std::string shown = printable(name);
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
      return bad("tensor {} with dtype, shape and two data_offsets wanted", shown);
    TensorInfo info;
    info.name = name;
    const auto& type = entry["dtype"].get_ref<const std::string&>();
    const auto* known = std::find_if(std::begin(kTypes), std::end(kTypes),
                                     [&](const NamedType& t) { return t.name == type; });
    if (known == std::end(kTypes))
      return fail(ErrorCode::kUnsupported,
                  "[safetensors] {}: tensor {} of F32, F16, BF16 or an integer type wanted, "
                  "got {}",
                  file_.name(), shown, printable(type));
    info.dtype = known->dtype;
    if (entry["shape"].size() > kMaxDims)
      return bad("tensor {} of at most {} dimensions wanted, got {}", shown, kMaxDims, entry["shape"].size());
    uint64_t elements = 1;
    for (const Json& side : entry["shape"]) {
      const std::optional<uint64_t> count = whole(side);
      if (!count || (*count != 0 && elements > UINT64_MAX / 16 / *count))
        return bad("tensor {} with a shape of whole numbers wanted, got {}", shown,
                   printable(entry["shape"].dump(-1, ' ', true, Json::error_handler_t::replace)));
      elements *= *count;
      info.shape.push_back(*count);
    }
    const std::optional<uint64_t> begin = whole(entry["data_offsets"][0]),
                                  end = whole(entry["data_offsets"][1]);
    const uint64_t available = file_.size() - data_start_;
    if (!begin || !end || *begin > *end || *end > available)
      return bad(
          "tensor {} with data_offsets inside {} bytes wanted, got {} to {}; the file is cut short or "
          "damaged",
          shown, available, begin.value_or(0), end.value_or(0));
    const uint64_t wanted = elements * dtype_info(info.dtype).block_bytes;
    if (*end - *begin != wanted)
      return bad("tensor {} of {} bytes by its shape and type wanted, got {}", shown, wanted, *end - *begin);
    info.size_bytes = wanted;
    info.offset = data_start_ + *begin;
    return info;
  }

  Result<void> check_overlaps() {
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& info : header_.tensors)
      if (info.size_bytes > 0) order.push_back(&info);
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < order.size(); ++i)
      if (order[i - 1]->offset + order[i - 1]->size_bytes > order[i]->offset)
        return bad("tensors that do not overlap wanted, {} and {} do", printable(order[i - 1]->name),
                   printable(order[i]->name));
    return {};
  }

  const ByteSource& file_;
  uint64_t data_start_ = 0;
  Header header_;
};

}  // namespace

Result<Header> read_header(const ByteSource& file) { return HeaderReader(file).read(); }

}  // namespace doppler::safetensors
