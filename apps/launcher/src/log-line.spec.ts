import { readLogLine } from './log';

describe(readLogLine.name, () => {
  it('shortens a JSON line to its message and fields', () => {
    const line =
      '{"level":30,"time":"2026-01-01T00:00:00Z","process":"api","url":"http://[::1]:1","msg":"api is listening"}';
    expect(readLogLine(line)).toEqual({ text: 'api is listening url=http://[::1]:1', isWarning: false });
  });

  it('shows the level of a warning or an error, and the cause', () => {
    const line = '{"level":50,"err":{"type":"Error","message":"no route","stack":"…"},"msg":"delivery failed"}';
    expect(readLogLine(line)).toEqual({ text: 'error: delivery failed err="no route"', isWarning: true });
  });

  it.each(['Error: out of memory', '{"half', '{"level":30}'])('keeps %s as it is', (line) => {
    expect(readLogLine(line)).toEqual({ text: line, isWarning: true });
  });
});
