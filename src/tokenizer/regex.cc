#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>
#include <utility>

namespace doppler {
namespace {

// White_Space. PCRE2's own \s also takes U+180E, which Unicode no longer counts.
constexpr std::string_view kSpaceRange =
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

// \w as the reference's engine has it, with the odd superscripts and fractions of Latin-1. PCRE2's own takes
// all numbers and, by version, marks or not.
constexpr std::string_view kWordRange =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

std::string with_unicode_classes(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      const bool space = escaped == 's' || escaped == 'S', word = escaped == 'w' || escaped == 'W';
      const bool negated = escaped == 'S' || escaped == 'W';
      if ((space || word) && !(negated && in_class)) {
        if (!in_class) out += negated ? "[^" : "[";
        out += space ? kSpaceRange : kWordRange;
        if (!in_class) out += ']';
      } else {
        out += c;
        out += escaped;
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      out += c;
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];
      continue;
    }
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

constexpr uint32_t kMatchLimit = 20'000'000;
constexpr size_t kJitStackBytes = size_t{1} << 20;

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  const std::string rewritten = with_unicode_classes(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  auto code = std::make_unique<Code>();
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code->code == nullptr) {
    PCRE2_UCHAR reason[128] = {};
    pcre2_get_error_message(error, reason, sizeof reason);
    return fail(ErrorCode::kBadFile, "[tokenizer] a split pattern does not compile: {} (near byte {} of {})",
                reinterpret_cast<const char*>(reason), offset, rewritten.size());
  }
  pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE);  // where it fails the interpreter runs the pattern
  return Regex(std::move(code));
}

struct Matcher::State {
  const pcre2_code* code;
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Matcher::Matcher(const Regex& regex) : state_(std::make_unique<State>()) {
  state_->code = regex.code_->code;
  state_->data = pcre2_match_data_create_from_pattern(state_->code, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  state_->stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
  pcre2_set_match_limit(state_->context, kMatchLimit);
  pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

bool Matcher::find(std::string_view text, size_t from, size_t& begin, size_t& end) {
  const int count = pcre2_match(state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                PCRE2_NO_UTF_CHECK, state_->data, state_->context);
  if (count < 0) return false;
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(state_->data);
  begin = span[0];
  end = span[1];
  return begin <= end;  // \K inside a lookahead can turn a match around
}

}  // namespace doppler
