"""CLIP's own vocabulary in the files that transformers reads, made of the merges that the project ships."""

import atexit
import gzip
import json
import shutil
import tempfile
from pathlib import Path

from transformers.convert_slow_tokenizer import bytes_to_unicode

MERGES = Path(__file__).parents[2] / "libs/diffusion/assets/clip-tokenizer/merges.txt.gz"


def clip_folder():
    """A folder with vocab.json and merges.txt, which goes with the process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    text = gzip.decompress(MERGES.read_bytes()).decode()
    symbols = list(bytes_to_unicode().values())
    merged = [line.replace(" ", "") for line in text.splitlines()[1:]]
    tokens = [*symbols, *(symbol + "</w>" for symbol in symbols), *merged, "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text(text)
    return folder
