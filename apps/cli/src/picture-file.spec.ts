import { formatOf, pictureFile } from './picture-file';

describe(pictureFile.name, () => {
  const never = () => false;

  it('consists of the words of the prompt and the seed', () => {
    expect(pictureFile('A red circle, on a blue background!', 42, 'png', never)).toBe(
      'a-red-circle-on-a-blue-background-42.png',
    );
  });

  it('keeps letters of other scripts and removes path separators', () => {
    expect(pictureFile('../Über 円/形', 1, 'png', never)).toBe('uber-円-形-1.png');
  });

  it('stays short', () => {
    expect(pictureFile('word '.repeat(400), 7, 'png', never).length).toBeLessThan(70);
  });

  it('works for a prompt without words', () => {
    expect(pictureFile('★ ★', 7, 'webp', never)).toBe('picture-7.webp');
  });

  it('takes the next free number when the name exists', () => {
    const taken = new Set(['a-1.png', 'a-1-2.png']);
    expect(pictureFile('a', 1, 'png', (file) => taken.has(String(file)))).toBe('a-1-3.png');
  });
});

describe(formatOf.name, () => {
  it.each([
    ['y.jpg', 'jpeg'],
    ['a/b.JPEG', 'jpeg'],
    ['y.webp', 'webp'],
    ['y.png', 'png'],
    ['y.gif', undefined],
    ['png', undefined],
  ])('takes %s for %s', (file, format) => expect(formatOf(file)).toBe(format));
});
