#include "gpu/shader_bindings.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string>

namespace doppler::gpu {
namespace {

// Drops comments and blanks, which WGSL allows between any two tokens of a declaration's head. Identifiers
// that follow each other keep one blank.
std::string squeeze(std::string_view source) {
  std::string out;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  bool gap = false;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source.substr(i, 2) == "//") {
      while (i < source.size() && source[i] != '\n') ++i;
      gap = true;
    } else if (source.substr(i, 2) == "/*") {
      int depth = 0;  // WGSL comments nest
      for (; i < source.size(); ++i) {
        if (source.substr(i, 2) == "/*")
          ++depth, ++i;
        else if (source.substr(i, 2) == "*/" && (++i, --depth == 0))
          break;
      }
      gap = true;
    } else if (std::isspace(static_cast<unsigned char>(source[i]))) {
      gap = true;
    } else {
      if (gap && !out.empty() && is_word(out.back()) && is_word(source[i])) out += ' ';
      gap = false;
      out += source[i];
    }
  }
  return out;
}

// Takes "name(number)" or "name(numberu)" off the front.
std::optional<uint32_t> take_attribute(std::string_view& rest, std::string_view name) {
  if (!rest.starts_with(name)) return std::nullopt;
  std::string_view r = rest.substr(name.size());
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(r.data(), r.data() + r.size(), value);
  if (error != std::errc()) return std::nullopt;
  r.remove_prefix(static_cast<size_t>(end - r.data()));
  if (r.starts_with("u") || r.starts_with("i")) r.remove_prefix(1);
  if (!r.starts_with(")")) return std::nullopt;
  rest = r.substr(1);
  return value;
}

std::optional<BindingKind> kind_of(std::string_view declaration) {
  if (declaration.starts_with("var<uniform>")) return BindingKind::kUniform;
  if (declaration.starts_with("var<storage,read_write>")) return BindingKind::kReadWriteStorage;
  if (declaration.starts_with("var<storage,read>") || declaration.starts_with("var<storage>"))
    return BindingKind::kReadStorage;
  return std::nullopt;
}

}  // namespace

Result<std::vector<BindingKind>> shader_bindings(std::string_view source) {
  const std::string squeezed = squeeze(source);
  std::vector<std::optional<BindingKind>> found;
  std::string_view rest = squeezed;
  for (size_t at; (at = rest.find('@')) != std::string_view::npos;) {
    rest.remove_prefix(at);
    std::optional<uint32_t> group = take_attribute(rest, "@group(");
    std::optional<uint32_t> binding = take_attribute(rest, "@binding(");
    if (!group) group = take_attribute(rest, "@group(");
    if (!group && !binding) {
      rest.remove_prefix(1);
      continue;
    }
    if (!group || !binding || *group != 0 || *binding >= 64)
      return fail(ErrorCode::kGpu,
                  "[gpu] a shader's bindings were wanted in group 0, numbers below 64; got {}",
                  rest.substr(0, 40));
    const std::optional<BindingKind> kind = kind_of(rest);
    if (!kind)
      return fail(ErrorCode::kGpu,
                  "[gpu] binding {} of a shader was wanted to be a storage or uniform buffer, got {}",
                  *binding, rest.substr(0, 40));
    if (found.size() <= *binding) found.resize(*binding + 1);
    if (found[*binding])
      return fail(ErrorCode::kGpu, "[gpu] binding {} of a shader is declared twice", *binding);
    found[*binding] = kind;
  }
  std::vector<BindingKind> kinds;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i])
      return fail(ErrorCode::kGpu, "[gpu] binding {} of a shader is missing, {} is there", i,
                  found.size() - 1);
    kinds.push_back(*found[i]);
  }
  return kinds;
}

}  // namespace doppler::gpu
