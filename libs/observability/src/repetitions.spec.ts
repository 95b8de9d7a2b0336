import { Repetitions } from './repetitions';

describe(Repetitions.name, () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const start = () => {
    const written: [string, number][] = [];
    const repetitions = new Repetitions();
    return {
      written,
      say: (line: string) => repetitions.write(line, (repeated) => written.push([line, repeated])),
    };
  };

  it('writes a line at once, and its repetitions as one line with a count', () => {
    const { written, say } = start();
    for (let i = 0; i < 28_000; i++) say('no connection');
    expect(written).toEqual([['no connection', 0]]);
    jest.advanceTimersByTime(30_000);
    expect(written.slice(1)).toEqual([['no connection', 27_999]]);
  });

  it('counts as long as the line is repeated, then forgets it', () => {
    const { written, say } = start();
    say('away');
    say('away');
    jest.advanceTimersByTime(30_000);
    jest.advanceTimersByTime(30_000);
    say('away');
    expect(written).toEqual([
      ['away', 0],
      ['away', 1],
      ['away', 0],
    ]);
  });

  it('treats lines that differ only in numbers as the same', () => {
    const { written, say } = start();
    for (const line of ['port 5432 is shut', 'port 5433 is shut', 'the disk is full']) say(line);
    expect(written.map(([line]) => line)).toEqual(['port 5432 is shut', 'the disk is full']);
  });

  it('remembers a limited number of lines', () => {
    const { written, say } = start();
    const word = (i: number): string => String.fromCharCode(97 + (i % 26)).repeat(1 + Math.floor(i / 26));
    for (let i = 0; i < 1000; i++) say(word(i));
    expect(written).toHaveLength(1000);
    expect(jest.getTimerCount()).toBe(100);
  });
});
