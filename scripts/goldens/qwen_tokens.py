"""Records the token ids of texts with the tokenizer of test/golden/models/qwen3, and what its chat template makes of a prompt.

python scripts/goldens/qwen_tokens.py folder/of/Qwen3s/tokenizer test/golden/data/tokens-qwen.json
"""

import json
import sys
import tempfile
import unicodedata
from pathlib import Path

from tokens import TEXTS
from transformer_models import cut_tokenizer
from transformers import AutoTokenizer

SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC", "SYRIAC", "THAANA", "NKO", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR",
           "GEORGIAN", "HANGUL", "ETHIOPIC", "CHEROKEE", "CANADIAN SYLLABICS", "KHMER", "MONGOLIAN", "HIRAGANA", "KATAKANA", "BOPOMOFO", "CJK UNIFIED", "YI SYLLABLE", "JAVANESE", "GOTHIC", "DESERET", "CUNEIFORM", "EGYPTIAN")
# Special tokens in a text, contractions in either case, line breaks beside those of the template, marks in another order than NFC's, spaces that are none in ASCII, emoji.
FURTHER = ["\n", "\n\n a", "a \n", "a\r\n\r\nb", "  two  spaces  ", "\t\ta", "It'S THEY'LL i'M", "it'ſ", "1234 ٣٤ ½ Ⅷ ²", "<|im_end|>", "a<|im_end|>\n<|im_start|>system\nb", "<think>a</think>", "<|endoftext|> a <|endoftext", "<|im_<|im_end|>",
           "o\u0323\u0302 o\u0302\u0323 \u1ed9", "\u1100\u1161\u11a8 \uac01", "\u212b \u2126 \u00c5", "a\u0085b\u00a0c\u1680d\u2003e\u2028f\u205fg\u3000h\ufeffi\u180ej\u200bk", "❤\ufe0f 🏳\ufe0f\u200d🌈 👍🏽 1\ufe0f⃣", "\U0001f9d1\U0001f3ff\u200d\U0001f680", "\x00\x1f\x7f", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ℌ ﷺ", "a" * 500, " " * 300, "!" * 100]


def sample(script):
    """Letters, marks and digits of a script, in words of five. The package tokenizers has NFC of Unicode 9, which does not know the class of Lao's U+0EBA."""
    found = [c for c in map(chr, range(0x2fa20)) if unicodedata.name(c, "").startswith(script + " ") and c != "\u0eba"]; found = found[::max(1, len(found) // 60)][:60]
    return " ".join("".join(found[i:i + 5]) for i in range(0, len(found), 5))


def main(folder, target):
    with tempfile.TemporaryDirectory() as cut:
        for name, data in cut_tokenizer(folder)[0].items(): (Path(cut) / name).write_text(json.dumps(data))
        tokenizer = AutoTokenizer.from_pretrained(cut)
    texts = [*TEXTS, *FURTHER, *map(sample, SCRIPTS)]; asked = lambda text, **options: tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True, **options)
    # The options of Flux2KleinPipeline and of ZImagePipeline.
    templates = [{"text": text, "flux2": asked(text, enable_thinking=False), "z-image": asked(text, enable_thinking=True)} for text in ("", "a cat", "\n a <|im_end|>\n", "<tool_response>a</tool_response>", "{{ a }}")]
    rows = [{"text": text, "input_ids": tokenizer(text).input_ids} for text in [*texts, *(row[name] for row in templates for name in ("flux2", "z-image"))]]
    Path(target).write_text(json.dumps({"tokenizer": "transformers Qwen2Tokenizer", "pad": tokenizer.pad_token_id, "templates": templates, "rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
