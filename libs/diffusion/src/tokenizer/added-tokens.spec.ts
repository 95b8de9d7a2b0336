import { AddedTokens, wordsWith } from './added-tokens';

/** Ids of plain text: its character codes, without spaces. */
const encode = (text: string) => [...text.replaceAll(' ', '')].map((char) => char.charCodeAt(0));

describe(AddedTokens.name, () => {
  const added = new AddedTokens({ robot: 1000, robot_1: 1001, robot_2: 1002, '<zwx>': 2000, 'a+b': 3000, 'x-y': 4000 });

  it('stands for all vectors of a word', () => {
    expect(added.tokenize('a robot', encode)).toEqual([97, 1000, 1001, 1002]);
  });

  it('ignores case', () => {
    expect(added.tokenize('Robot', encode)).toEqual([1000, 1001, 1002]);
  });

  it('matches whole words only', () => {
    expect(added.tokenize('robots', encode)).toEqual(encode('robots'));
  });

  it('finds a word that consists of symbols, anywhere', () => {
    expect(added.tokenize('b<zwx>b', encode)).toEqual([98, 2000, 98]);
    expect(added.tokenize('a+b x-y', encode)).toEqual([3000, 4000]);
    expect(added.tokenize('aab', encode)).toEqual(encode('aab'));
  });

  it('prefers the longer of two words', () => {
    expect(added.tokenize('robot_2', encode)).toEqual([1002]);
  });

  it('finds every occurrence of several words', () => {
    expect(added.tokenize('robot <zwx>, ROBOT_1 x-y robot', encode)).toEqual([
      ...[1000, 1001, 1002, 2000, ...encode(','), 1001, 4000, 1000, 1001, 1002],
    ]);
  });
});

describe(wordsWith.name, () => {
  it('names each vector', () => {
    expect(wordsWith({ cat: 5 }, 'zwx', 3, 100)).toEqual({ cat: 5, zwx: 100, zwx_1: 101, zwx_2: 102 });
  });

  it('replaces a word with all its vectors, and no other with the same prefix', () => {
    const before = { zwx: 1, zwx_1: 2, zwx_2: 3, zwx_a: 4, zwxy: 5 };
    expect(wordsWith(before, 'zwx', 1, 100)).toEqual({ zwx_a: 4, zwxy: 5, zwx: 100 });
  });

  it('takes a word in other letters for the same', () => {
    expect(wordsWith({ '<Cat>': 5, '<Cat>_1': 6 }, '<cAT>', 1, 100)).toEqual({ '<cat>': 100 });
  });
});
