import { onceEach } from './once-each';

describe(onceEach, () => {
  it('tells each sentence once, and again after a thousand others', () => {
    const told: string[] = [];
    const tell = onceEach((sentence) => told.push(sentence));
    for (const sentence of ['one', 'one', 'two', 'one']) tell(sentence);
    expect(told).toEqual(['one', 'two']);
    for (let i = 0; i < 999; i++) tell(`${i}`);
    tell('one');
    expect(told.filter((sentence) => sentence === 'one')).toHaveLength(2);
  });
});
