#!/usr/bin/env python3
"""Compares Doppler's tokenizer with Hugging Face `tokenizers`, or SentencePiece, over random strings.

Needs the PyPI packages `tokenizers` and `sentencepiece` (keep them in a virtual environment outside the repository).

    python3 tools/tokenizer_oracle.py --json tokenizer.json --count 5000 \\
        -- build/release/doppler tokenize MODEL --stdin-jsonl
    python3 tools/tokenizer_oracle.py --json tokenizer.json --decode -- doppler_tokenize_lines tokenizer.json --decode
    python3 tools/tokenizer_oracle.py --json tokenizer.model -- doppler_tokenize_lines tokenizer.model

The command after `--` reads {"text": ...} lines and answers {"ids": [...]} lines; MODEL may be a GGUF file or a
converted model, `--json` is the tokenizer.json that the oracle reads (a converted model holds one), or a SentencePiece
model (*.model). With --special both sides parse special text, with --bos both add what the model asks for, with
--decode the text of the ids is compared too. --sample FILE writes the first strings with the oracle's ids, as kept in
tests/golden. tools/make_tokenizer_golden.py makes small tokenizers of every kind. Exit code 1 if any string differs.
"""
import argparse
import json
import random
import subprocess
import sys
import unicodedata

RANGES = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF),
          (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x20A0, 0x20CF),
          (0x2100, 0x218F), (0x2460, 0x24FF), (0x2580, 0x25FF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0xFE00, 0xFE0F), (0xFF00, 0xFFEF), (0x10000, 0x1007F), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF),
          (0x1F900, 0x1F9FF), (0x20000, 0x200FF), (0xE000, 0xE01F)]
SPACES = list(" \t\n\r\v\f\u0085\u00a0\u1680\u180e\u2003\u2028\u2029\u202f\u205f\u3000\u200b\ufeff")
BITS = ["'s", "'t", "'re", "'ll", "'S", "’s", "I'm", "12345", "3.14", "½", "Ⅷ", "٣", "\r\n", "  ", "    ", "<", ">",
        "<0x0A>", "<|im_start|>", "<bos>", "<eos>", "▁", "Ġ", "Ċ", "https://a.b/c?d=e", "e\u0301", "👨‍👩‍👧",
        "🇫🇷", "👍🏽", "\x00", "\x01", "\x7f", "\ufffd", "\uffff", "<h1>", "</td>", "\n\n\n", "\t\t"]


def assigned(code):
    # Characters newer than the Unicode tables either side holds have no agreed category.
    return unicodedata.category(chr(code)) != "Cn"


def random_text(rng, words, tokens):
    out = []
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13, 30])):
        kind = rng.random()
        if kind < 0.2:
            out.append(rng.choice(words) + rng.choice(["", " ", " ", ", ", ". ", "\n"]))
        elif kind < 0.4:
            out.append(rng.choice(tokens))
        elif kind < 0.6:
            low, high = rng.choice(RANGES)
            out.append("".join(c for c in (chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))
                               if assigned(ord(c))))
        elif kind < 0.72:
            out.append("".join(rng.choice(SPACES[:4] if rng.random() < 0.7 else SPACES)
                               for _ in range(rng.randint(1, 5))))
        elif kind < 0.8:
            unit = rng.choice([rng.choice(words)[:3], rng.choice("aen -=.\n\t*#") or "a", rng.choice(tokens)[:4]])
            out.append(unit * rng.randint(2, 40))
        elif kind < 0.9:
            out.append(rng.choice(BITS))
        else:
            out.append("".join(rng.choice("ab 'st0") for _ in range(rng.randint(1, 12))))
    return "".join(out)


class HuggingFace:
    """The oracle of a tokenizer.json. Truncation and padding of the file are left out, as the engine does."""

    def __init__(self, path, special):
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(path)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = not special
        self.size = self.tokenizer.get_vocab_size()
        self.byte_level = self.tokenizer.decoder is not None and "ByteLevel" in str(self.tokenizer.decoder)

    def token(self, index):
        if self.byte_level:
            return self.tokenizer.decode([index], skip_special_tokens=False)
        return self.tokenizer.id_to_token(index)

    def encode(self, text, bos):
        return self.tokenizer.encode(text, add_special_tokens=bos).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True)


class SentencePiece:
    """The oracle of a SentencePiece model."""

    def __init__(self, path):
        from sentencepiece import SentencePieceProcessor

        self.processor = SentencePieceProcessor(model_file=path)
        self.size = self.processor.get_piece_size()

    def token(self, index):
        return self.processor.id_to_piece(index)

    def encode(self, text, bos):
        return self.processor.encode(text)

    def decode(self, ids):
        return self.processor.decode([i for i in ids if not self.processor.is_unknown(i)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, help="tokenizer.json or *.model for the oracle")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--special", action="store_true", help="special text is parsed (pass it to the command too)")
    parser.add_argument("--bos", action="store_true", help="what the model adds is added (pass it on too)")
    parser.add_argument("--decode", action="store_true", help="texts of ids are compared (pass it on too)")
    parser.add_argument("--avoid", action="append", default=[], help="leave out strings that hold this")
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="a file of words")
    parser.add_argument("--sample", help="write strings and the oracle's ids here")
    parser.add_argument("--sample-count", type=int, default=300)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    oracle = SentencePiece(args.json) if args.json.endswith(".model") else HuggingFace(args.json, args.special)
    rng = random.Random(args.seed)
    words = open(args.text, encoding="utf-8").read().split()

    def token_text(index):
        text = (oracle.token(index) or "").replace("\ufffd", "")
        return text.replace("▁", " ").replace("</w>", "").removeprefix("##")

    tokens = [t for t in (token_text(rng.randrange(oracle.size)) for _ in range(20000)) if t]
    texts = [random_text(rng, words, tokens) for _ in range(args.count)]
    texts = [text for text in texts if not any(avoided in text for avoided in args.avoid)]
    expected = [oracle.encode(text, args.bos) for text in texts]
    decoded = [oracle.decode(ids) for ids in expected] if args.decode else None
    if args.sample:
        with open(args.sample, "w", encoding="utf-8") as file:
            sample = [{"text": t, "ids": e} for t, e in zip(texts, expected) if len(t) < 200][: args.sample_count]
            if decoded:
                by_text = dict(zip(texts, decoded))
                sample = [dict(item, decoded=by_text[item["text"]]) for item in sample]
            json.dump(sample, file, ensure_ascii=True, separators=(",", ":"))
            file.write("\n")
    command = [c for c in args.command if c != "--"]
    if not command:
        return 0
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    answer = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in answer.stdout.strip("\n").split("\n")]
    wrong = [(t, e, g["ids"]) for t, e, g in zip(texts, expected, answers) if e != g["ids"]]
    for text, want, have in wrong[:10]:
        at = next((i for i, (a, b) in enumerate(zip(want, have)) if a != b), min(len(want), len(have)))
        print(f"differs at {at}: {text!r}\n  oracle {[oracle.token(i) for i in want[at:at + 6]]}\n"
              f"  here   {[oracle.token(i) for i in have[at:at + 6]]}")
    print(f"{len(texts)} strings, {len(wrong)} differ")
    wrong_texts = [(t, d, g["text"]) for t, d, g in zip(texts, decoded, answers) if d != g["text"]] if decoded else []
    for text, want, have in wrong_texts[:10]:
        print(f"decodes otherwise: {text!r}\n  oracle {want!r}\n  here   {have!r}")
    if decoded:
        print(f"{len(texts)} decoded texts, {len(wrong_texts)} differ")
    return 1 if wrong or wrong_texts or len(answers) != len(texts) else 0


if __name__ == "__main__":
    sys.exit(main())
