#include "chat/chat_template.h"

#include <algorithm>
#include <array>
#include <optional>

namespace doppler {
namespace {

constexpr std::string_view kStart = "<|im_start|>";
constexpr std::string_view kEnd = "<|im_end|>";

/// The system message that a ChatML template writes itself when the messages bring none: a literal
/// '<|im_start|>system\nTEXT<|im_end|>' without Jinja inside. Its newline may be escaped or not.
std::optional<std::string> literal_system(std::string_view jinja) {
  for (size_t at = jinja.find(kStart); at != std::string_view::npos; at = jinja.find(kStart, at + 1)) {
    std::string_view rest = jinja.substr(at + kStart.size());
    const auto skip = [&](std::string_view prefix) {
      if (!rest.starts_with(prefix)) return false;
      rest.remove_prefix(prefix.size());
      return true;
    };
    if (!skip("system") || !(skip("\n") || skip("\\n"))) continue;
    const size_t end = rest.find(kEnd);
    if (end == std::string_view::npos) continue;
    const std::string_view text = rest.substr(0, end);
    // A quote or brace means that the literal ends before <|im_end|> and code follows.
    if (text.find_first_of("'\"{}") != std::string_view::npos) continue;
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i).starts_with("\\n")) {
        out += '\n';
        ++i;
      } else {
        out += text[i];
      }
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace

Result<ChatTemplate> chat_template_from_jinja(std::string_view jinja) {
  if (jinja.empty())
    return fail(ErrorCode::kUnsupported,
                "[chat] this model has no chat template, it continues text; run it without --chat");
  if (jinja.find(kStart) != std::string_view::npos)
    return ChatTemplate{ChatFormat::kChatml, literal_system(jinja).value_or("")};
  return fail(ErrorCode::kUnsupported,
              "[chat] ChatML wanted, this model's template is of another format, which is not supported yet; "
              "run it without --chat and write its turns in the prompt");
}

Result<ChatTemplate> chat_template_from_name(std::string_view name) {
  if (name == "chatml") return ChatTemplate{};
  if (name.empty()) return chat_template_from_jinja("");
  return fail(
      ErrorCode::kUnsupported,
      "[chat] template \"chatml\" wanted, the model asks for \"{}\", which is not supported yet; run it "
      "without --chat and write its turns in the prompt",
      name);
}

Result<std::vector<ChatPiece>> render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                           bool add_generation_prompt) {
  if (messages.empty() || messages.front().role == "system" || chat.default_system.empty())
    return render_chatml(messages, add_generation_prompt);
  std::vector<ChatMessage> all = {{"system", chat.default_system}};
  all.insert(all.end(), messages.begin(), messages.end());
  return render_chatml(all, add_generation_prompt);
}

Result<std::vector<ChatPiece>> render_chatml(std::span<const ChatMessage> messages,
                                             bool add_generation_prompt) {
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  if (messages.empty()) return fail(ErrorCode::kBadInput, "[chat] at least one message wanted, got none");
  std::vector<ChatPiece> pieces;
  std::string text;  // gathered up to the next control token, so that it is tokenised as one run
  const auto control = [&](std::string_view token) {
    if (!text.empty()) pieces.push_back({std::exchange(text, {}), false});
    pieces.push_back({std::string(token), true});
  };
  for (const ChatMessage& message : messages) {
    if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end())
      return fail(ErrorCode::kBadInput, "[chat] role system, user, assistant or tool wanted, got \"{}\"",
                  message.role);
    control(kStart);
    text += message.role + "\n" + message.content;
    control(kEnd);
    text += "\n";
  }
  if (add_generation_prompt) {
    control(kStart);
    text += "assistant\n";
  }
  if (!text.empty()) pieces.push_back({std::move(text), false});
  return pieces;
}

std::string join_pieces(std::span<const ChatPiece> pieces) {
  std::string out;
  for (const ChatPiece& piece : pieces) out += piece.text;
  return out;
}

}  // namespace doppler
