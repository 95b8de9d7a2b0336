"""Records the token ids of texts, padded and cut to 77, as test/golden/tokenizer.spec.ts reads them.

python scripts/goldens/tokens.py models/shapes/tokenizer test/golden/data/tokens-shapes.json
python scripts/goldens/tokens.py clip test/golden/data/tokens-clip.json
python scripts/goldens/tokens.py clip test/golden/data/tokens-clip-zero.json '!'

clip is CLIP's own vocabulary, and the last argument the pad token.
"""

import json
import sys

from clip_vocabulary import clip_folder
from transformers import CLIPTokenizer

# White space, case, punctuation, contractions, digits, scripts, combining characters, emoji, markup, and more than fits.
TEXTS = [
    "",
    " ",
    "a photo of a cat",
    "A Photo   of\ta\nCAT",
    "a red circle on a blue background",
    "a glossy green star above a big purple hexagon",
    "three black rings, on a yellow background!",
    "it's 3:45pm — don't stop",
    "naïve café façade",
    "北京的秋天",
    "emoji 😀 and 👩\u200d👩\u200d👧 family",
    "zwx robot",
    "zwxrobot, zwx-robot; (zwx) robot",
    "hello!!! ... --- ///",
    "price: $1,299.99 (50% off)",
    "x" * 300,
    " ".join(["circle"] * 100),
    "ﬁne ligature ﬁ and Å vs Å",
    "İstanbul STRASSE ß ẞ",
    "tab\xa0nbsp\u2003emspace\u200bzero",
    "underscore_and_camelCase123",
    "<b>html</b> & &amp; entities",
    "ЀПривет мир",
    "عربي نص",
    "हिन्दी",
    "á combining é",
    "🇫🇷 flag",
    "1234567890",
    "((masterpiece)), [[blurry]], best:1.3",
    "a-b_c.d,e;f:g!h?i'j\"k",
    "'s 't 're 've 'm 'll 'd",
    "I'LL WE'RE THEY'VE",
]
LENGTH = 77


def main(folder, target, pad="<|endoftext|>"):
    folder = clip_folder() if folder == "clip" else folder
    tokenizer = CLIPTokenizer(f"{folder}/vocab.json", f"{folder}/merges.txt", pad_token=pad, model_max_length=LENGTH)
    rows = [
        {
            "text": text,
            "input_ids": tokenizer(text, padding="max_length", max_length=LENGTH, truncation=True).input_ids,
            "length": len(tokenizer(text, padding=False, truncation=False).input_ids),
        }
        for text in TEXTS
    ]
    with open(target, "w") as file:
        json.dump({"tokenizer": "transformers CLIPTokenizer", "rows": rows}, file, ensure_ascii=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
