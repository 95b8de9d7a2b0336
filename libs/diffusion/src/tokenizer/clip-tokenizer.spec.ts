import { ClipTokenizer } from './clip-tokenizer';

describe(ClipTokenizer.name, () => {
  let end: ClipTokenizer;
  let zero: ClipTokenizer;

  beforeAll(async () => {
    end = await ClipTokenizer.clip({ padToken: 'end' });
    zero = await ClipTokenizer.clip({ padToken: 'zero' });
  });

  it("has CLIP's ids", () => {
    expect([end.vocabularySize, end.bos, end.eos, end.maxLength]).toEqual([49_408, 49_406, 49_407, 77]);
    expect(end.tokenize('a photo of a cat')).toEqual([320, 1125, 539, 320, 2368]);
  });

  it('pads as the model knows it', () => {
    expect(end.frame([320]).slice(0, 5)).toEqual([49_406, 320, 49_407, 49_407, 49_407]);
    expect(zero.frame([320]).slice(0, 5)).toEqual([49_406, 320, 49_407, 0, 0]);
  });

  it('reads a pad token in a text as diffusers does', () => {
    expect(end.tokenize('hi!!')).toEqual([1883, 748]);
    expect(zero.tokenize('hi!!')).toEqual([1883, 0, 0]);
    expect(zero.tokenize('¡Hola! (a!)')).toEqual([10830, 28724, 0, 263, 320, 0, 264]);
    expect(zero.hasAddedWords).toBe(false);
  });

  it('numbers the vectors of several words after the vocabulary, for either padding alike', () => {
    const words = [
      { word: 'zwx', vectors: 2 },
      { word: '<bad>', vectors: 1 },
      { word: 'Zwy', vectors: 3 },
    ];
    for (const tokenizer of [end, zero]) {
      const taught = tokenizer.withWords(words);
      expect(taught.tokenize('ZWX, <bad> cat')).toEqual([49_408, 49_409, 267, 49_410, 2368]);
      expect(taught.tokenize('zwy')).toEqual([49_411, 49_412, 49_413]);
      expect([taught.vocabularySize, taught.hasAddedWords]).toEqual([49_414, true]);
      expect(tokenizer.tokenize('zwy')).not.toContain(49_411);
    }
  });

  it('counts the last of two meanings of a word, and numbers both', () => {
    const taught = end.withWords([
      { word: 'zwx', vectors: 2 },
      { word: 'zwx', vectors: 1 },
    ]);
    expect(taught.tokenize('zwx')).toEqual([49_410]);
  });

  it('numbers vectors from another id on, those of a word without a name too', () => {
    const words = [
      { word: '', vectors: 2 },
      { word: 'zwx', vectors: 1 },
    ];
    expect(end.withWords(words, 50_000).tokenize('zwx cat')).toEqual([50_002, 2368]);
  });
});
