import { replaced } from './replaced';

describe(replaced.name, () => {
  it('replaces every occurrence, by the text as it is', () => {
    expect(replaced('a, b, a', 'a', '$&')).toBe('$&, b, $&');
  });

  it('throws where there is nothing to replace, since the migration would change nothing', () => {
    expect(() => replaced('SELECT a', 'SELECT b', 'SELECT c')).toThrow('There is no "SELECT b"');
  });
});
