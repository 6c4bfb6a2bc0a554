#!/usr/bin/env python3
"""Trains small tokenizers of every kind and writes them with 300 random strings each, as tests/golden keeps them.

Needs the PyPI packages `tokenizers` and `sentencepiece` (keep them in a virtual environment outside the repository).

    python3 tools/make_tokenizer_golden.py tests/golden/tokenizer [NAME ...]

Writes components.json, and for each NAME: NAME.tokenizer.json or NAME.model, and NAME-sample.json by tools/tokenizer_oracle.py.
"""
import collections
import io
import json
import os
import random
import subprocess
import sys

import sentencepiece
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

import tokenizer_oracle

GPL = "/usr/share/common-licenses/GPL-3"


def corpus():
    rng = random.Random(7)
    lines = [line for line in open(GPL, encoding="utf-8").read().split("\n") if line.strip()]
    words = " ".join(lines).split()
    # No control characters: SentencePiece's trainer reserves some.
    mixed = (tokenizer_oracle.random_text(rng, words, words) for _ in range(1500))
    return lines + ["".join(c for c in text if c >= " " and c not in "▁\u2585") for text in mixed]


def common_alphabet(texts, size):
    counts = collections.Counter(c for text in texts for c in text)
    kept = {c for c, _ in counts.most_common(size)}
    return ["".join(c for c in text if c in kept) for text in texts]


def sentencepiece_model(texts, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(common_alphabet(texts, 300)), model_writer=out, minloglevel=2,
                                             num_threads=1, **options)
    return out.getvalue()


def charsmap(model):
    from sentencepiece import sentencepiece_model_pb2

    return sentencepiece_model_pb2.ModelProto.FromString(model).normalizer_spec.precompiled_charsmap


def train(tokenizer, trainer, texts):
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def bert(texts, **options):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=1400, show_progress=False, limit_alphabet=500,
                                        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    train(tokenizer, trainer, texts)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def unigram(texts, normalizer, pre_tokenizer, decoder, **options):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    trainer = trainers.UnigramTrainer(vocab_size=900, show_progress=False, unk_token="<unk>",
                                      special_tokens=["<pad>", "</s>", "<unk>"], **options)
    return train(tokenizer, trainer, common_alphabet(texts, 300))  # the vocabulary holds every character


def unigram_t5(texts):
    tokenizer = unigram(texts, None,
                        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                        decoders.Metaspace())
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def unigram_precompiled(texts):
    map_bytes = charsmap(sentencepiece_model(texts, vocab_size=800, model_type="unigram"))
    return unigram(texts, normalizers.Sequence([normalizers.Precompiled(map_bytes),
                                                normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first"))


def unigram_bytes(texts):
    steps = [normalizers.Nmt(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip(),
             normalizers.Lowercase(), normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    tokenizer = unigram(texts, normalizers.Sequence(steps),
                        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.Punctuation("merged_with_previous"),
                                                 pre_tokenizers.CharDelimiterSplit("q")]),
                        decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]))
    data = json.loads(tokenizer.to_str())
    # Trained without byte tokens: they go behind the rest.
    data["model"]["byte_fallback"] = True
    data["model"]["vocab"] += [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
    return Tokenizer.from_str(json.dumps(data))


def bpe_affixes(texts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>",
                                     fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.BPEDecoder()
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"], limit_alphabet=120,
                                  continuing_subword_prefix="##", end_of_word_suffix="</w>")
    return train(tokenizer, trainer, texts)


KINDS = {
    "wordpiece-uncased": lambda texts: bert(texts),
    "wordpiece-cased": lambda texts: bert(texts, lowercase=False, strip_accents=False, handle_chinese_chars=False,
                                          clean_text=False),
    "unigram-t5": unigram_t5,
    "unigram-precompiled": unigram_precompiled,
    "unigram-bytes": unigram_bytes,
    "bpe-affixes": bpe_affixes,
    "sp-unigram": lambda texts: sentencepiece_model(texts, vocab_size=1200, model_type="unigram", byte_fallback=True,
                                                    user_defined_symbols=["<sep>", "don't", "▁▁"]),
    "sp-unigram-plain": lambda texts: sentencepiece_model(texts, vocab_size=900, model_type="unigram",
                                                          normalization_rule_name="nfkc_cf",
                                                          add_dummy_prefix=False),
    "sp-bpe": lambda texts: sentencepiece_model(texts, vocab_size=1200, model_type="bpe", byte_fallback=True,
                                                normalization_rule_name="identity", remove_extra_whitespaces=False,
                                                split_digits=True, user_defined_symbols=["<0>", "\t", "▁▁▁"]),
    "sp-bpe-suffix": lambda texts: sentencepiece_model(texts, vocab_size=900, model_type="bpe",
                                                       treat_whitespace_as_suffix=True,
                                                       normalization_rule_name="identity"),
}


NORMALIZERS = [
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
     "lowercase": True},
    {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "strip_accents": True,
     "lowercase": False},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": False,
     "lowercase": True},
    {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": False, "strip_right": True},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
    {"type": "Nmt"}, {"type": "NFC"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
    {"type": "StripAccents"}, {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"},
    {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRE_TOKENIZERS = [
    {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "CharDelimiterSplit", "delimiter": "e"},
    {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": True},
    {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
    {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation"}]},
] + [{"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS] + [
    {"type": "Split", "pattern": {"Regex": "[aeiou]\\w?|\\s"}, "behavior": behavior, "invert": invert}
    for behavior in BEHAVIORS for invert in (False, True)] + [
    {"type": "Split", "pattern": {"String": " "}, "behavior": behavior, "invert": False} for behavior in BEHAVIORS]


def component_samples():
    """What single components make of random strings."""
    rng = random.Random(11)
    words = open(GPL, encoding="utf-8").read().split()
    empty = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
             "decoder": None, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}

    def texts():
        made = (tokenizer_oracle.random_text(rng, words, words) for _ in range(1000))
        return [text for text in made if len(text) < 60][:12]

    cases = []
    for part in NORMALIZERS:
        made = Tokenizer.from_str(json.dumps(dict(empty, normalizer=part))).normalizer
        cases.append({"normalizer": part, "samples": [[t, made.normalize_str(t)] for t in texts()]})
    for part in PRE_TOKENIZERS:
        made = Tokenizer.from_str(json.dumps(dict(empty, pre_tokenizer=part))).pre_tokenizer
        cases.append({"pre_tokenizer": part,
                      "samples": [[t, [piece for piece, _ in made.pre_tokenize_str(t)]] for t in texts()]})
    return cases


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(KINDS)
    texts = corpus()
    with open(os.path.join(folder, "components.json"), "w", encoding="utf-8") as file:
        json.dump(component_samples(), file, ensure_ascii=True, separators=(",", ":"))
        file.write("\n")
    for name in names:
        made = KINDS[name](texts)
        path = os.path.join(folder, name + (".model" if isinstance(made, bytes) else ".tokenizer.json"))
        with open(path, "wb") as file:
            file.write(made if isinstance(made, bytes) else json.dumps(
                json.loads(made.to_str()), ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        subprocess.run([sys.executable, tokenizer_oracle.__file__, "--json", path, "--decode", "--sample",
                        os.path.join(folder, name + "-sample.json")], check=True)
        print(name, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
