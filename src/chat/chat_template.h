#pragma once
// Turns messages into prompt text the way the model was trained. Built in: ChatML.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doppler/generate.h"  // ChatMessage

namespace doppler {

/// A piece of the rendered prompt. What a person wrote is never in a piece with `parse_special`: text that
/// spells <|im_end|> stays text.
struct ChatPiece {
  std::string text;
  bool parse_special = false;  // the piece is a control token's spelling
};

enum class ChatFormat { kChatml };

struct ChatTemplate {
  ChatFormat format = ChatFormat::kChatml;
  std::string default_system;  // used when the first message is not a system message; empty: none
};

/// Recognises a format in the text of a Jinja template (`tokenizer.chat_template`). Errors (kUnsupported): no
/// template, or one of a format that is not built in.
Result<ChatTemplate> chat_template_from_jinja(std::string_view jinja);

/// A format by its name ("chatml"), without a default system message.
Result<ChatTemplate> chat_template_from_name(std::string_view name);

/// Renders all messages, and the opening of the assistant's turn if `add_generation_prompt`. Errors
/// (kBadInput): no message, or a role that the format does not know.
Result<std::vector<ChatPiece>> render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                                           bool add_generation_prompt);

/// ChatML: <|im_start|>ROLE\nCONTENT<|im_end|>\n for each message, then <|im_start|>assistant\n.
Result<std::vector<ChatPiece>> render_chatml(std::span<const ChatMessage> messages,
                                             bool add_generation_prompt);

/// All pieces' text in one string, for messages and tests.
std::string join_pieces(std::span<const ChatPiece> pieces);

}  // namespace doppler
