#include "kernels/common/wgsl.h"

#include <charconv>
#include <map>
#include <mutex>
#include <optional>

#include "kernels/common/wgsl_files.h"

namespace doppler::kernels {
namespace {

struct Line {
  std::string text;
  std::string_view file;
  int number;
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

/// The rest of `line` after `directive`, if the line is that directive.
std::optional<std::string_view> argument(std::string_view line, std::string_view directive) {
  line = trimmed(line);
  if (!line.starts_with(directive)) return std::nullopt;
  line.remove_prefix(directive.size());
  if (!line.empty() && is_word(line.front())) return std::nullopt;
  return trimmed(line);
}

const WgslFile* find_file(std::string_view path) {
  for (const WgslFile& file : wgsl_files())
    if (file.path == path) return &file;
  return nullptr;
}

class Expander {
 public:
  explicit Expander(const Defines& defines) : defines_(defines) {}

  /// Appends the lines of `text` that #if keeps, with includes put in place.
  Result<void> load(std::string_view name, std::string_view text, int depth) {
    if (depth > 16) return fail(ErrorCode::kBadInput, "[wgsl] {}: includes nest deeper than 16", name);
    std::vector<bool> keep;  // one per open #if
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      bool live = true;
      for (const bool k : keep) live = live && k;
      if (auto condition = argument(line, "#if")) {
        const bool negate = condition->starts_with('!');
        if (negate) condition->remove_prefix(1);
        keep.push_back(truth(*condition) != negate);
      } else if (argument(line, "#else") || argument(line, "#endif")) {
        if (keep.empty()) return fail(ErrorCode::kBadInput, "[wgsl] {}:{}: no #if is open", name, number);
        if (argument(line, "#else"))
          keep.back() = !keep.back();
        else
          keep.pop_back();
      } else if (!live) {
        continue;
      } else if (auto target = argument(line, "#include")) {
        if (const std::string* define = defines_.find(*target)) target = *define;
        if (target->size() >= 2 && target->front() == '"') target = target->substr(1, target->size() - 2);
        const WgslFile* file = find_file(*target);
        if (file == nullptr)
          return fail(ErrorCode::kBadInput, "[wgsl] {}:{}: no file \"{}\"", name, number, *target);
        DOPPLER_CHECK_OK(load(file->path, file->text, depth + 1));
      } else {
        lines_.push_back({std::string(line), name, number});
      }
    }
    if (!keep.empty())
      return fail(ErrorCode::kBadInput, "[wgsl] {}: {} #if without #endif", name, keep.size());
    return {};
  }

  Result<std::string> finish() {
    DOPPLER_TRY(const std::vector<Line> lines, unrolled(lines_));
    std::string out;
    for (const Line& line : lines) append_replaced(line.text, out);
    return out;
  }

 private:
  bool truth(std::string_view name) const {
    const std::string* text = defines_.find(name);
    return text != nullptr && !text->empty() && *text != "0" && *text != "0u";
  }

  Result<uint32_t> count(std::string_view text, const Line& at) const {
    if (const std::string* define = defines_.find(text)) text = *define;
    uint32_t n = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), n).ec != std::errc())
      return fail(ErrorCode::kBadInput, "[wgsl] {}:{}: #unroll wants a number, got \"{}\"", at.file,
                  at.number, text);
    return n;
  }

  Result<std::vector<Line>> unrolled(const std::vector<Line>& lines) const {
    std::vector<Line> out;
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto head = argument(lines[i].text, "#unroll");
      if (!head) {
        out.push_back(lines[i]);
        continue;
      }
      const size_t space = head->find(' ');
      if (space == std::string_view::npos)
        return fail(ErrorCode::kBadInput, "[wgsl] {}:{}: #unroll wants a name and a count", lines[i].file,
                    lines[i].number);
      const std::string token = "{" + std::string(head->substr(0, space)) + "}";
      DOPPLER_TRY(const uint32_t copies, count(trimmed(head->substr(space)), lines[i]));
      size_t end = i + 1;
      for (int depth = 1; end < lines.size(); ++end) {
        if (argument(lines[end].text, "#unroll")) ++depth;
        if (argument(lines[end].text, "#end") && --depth == 0) break;
      }
      if (end == lines.size())
        return fail(ErrorCode::kBadInput, "[wgsl] {}:{}: #unroll without #end", lines[i].file,
                    lines[i].number);
      for (uint32_t k = 0; k < copies; ++k) {
        std::vector<Line> body(lines.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                               lines.begin() + static_cast<std::ptrdiff_t>(end));
        const std::string digits = std::to_string(k);
        for (Line& line : body)
          for (size_t at = line.text.find(token); at != std::string::npos; at = line.text.find(token, at))
            line.text.replace(at, token.size(), digits);
        DOPPLER_TRY(const std::vector<Line> inner, unrolled(body));
        out.insert(out.end(), inner.begin(), inner.end());
      }
      i = end;
    }
    return out;
  }

  void append_replaced(std::string_view line, std::string& out) {
    for (size_t i = 0; i < line.size();) {
      if (line.substr(i).starts_with("//")) break;  // comments are not part of a pipeline's identity
      if (!is_word(line[i])) {
        out += line[i++];
        continue;
      }
      size_t end = i;
      while (end < line.size() && is_word(line[end])) ++end;
      const std::string_view word = line.substr(i, end - i);
      if (word == "next" && out.ends_with("@binding("))
        out += std::to_string(next_binding_++);
      else if (const std::string* define = defines_.find(word))
        out += *define;
      else
        out += word;
      i = end;
    }
    out += '\n';
  }

  const Defines& defines_;
  std::vector<Line> lines_;
  uint32_t next_binding_ = 0;
};

}  // namespace

Defines& Defines::set(std::string_view name, std::string_view text) {
  list_.emplace_back(name, text);
  return *this;
}

Defines& Defines::number(std::string_view name, uint32_t value) {
  return set(name, std::to_string(value) + "u");
}

Defines& Defines::flag(std::string_view name, bool value) { return set(name, value ? "1u" : "0u"); }

const std::string* Defines::find(std::string_view name) const {
  for (const auto& [key, text] : list_)
    if (key == name) return &text;
  return nullptr;
}

std::string Defines::key() const {
  std::string key;
  for (const auto& [name, text] : list_) key.append(name).append("=").append(text).append(";");
  return key;
}

Result<std::string> expand_wgsl_text(std::string_view name, std::string_view text, const Defines& defines) {
  Expander expander(defines);
  DOPPLER_CHECK_OK(expander.load(name, text, 0));
  return expander.finish();
}

Result<std::string_view> expand_wgsl(std::string_view path, const Defines& defines) {
  // Expansion is a pure function of its arguments; recording a step asks for hundreds of the same texts.
  static std::mutex mutex;
  static std::map<std::string, std::string, std::less<>> known;
  const std::string key = std::string(path) + ";" + defines.key();
  const std::lock_guard lock(mutex);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  const WgslFile* file = find_file(path);
  if (file == nullptr) return fail(ErrorCode::kBadInput, "[wgsl] no file \"{}\"", path);
  DOPPLER_TRY(std::string text, expand_wgsl_text(path, file->text, defines));
  return known.emplace(key, std::move(text)).first->second;
}

}  // namespace doppler::kernels
