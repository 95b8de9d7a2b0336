import type { ModelProgress } from '@app/model-store';
import { describeProgress, formatDuration, ProgressLine } from './progress-line';

const progress = (doneBytes: number): ModelProgress => ({
  phase: 'download',
  file: 'unet/weights.pb',
  doneBytes,
  totalBytes: 4_000_000_000,
  doneFiles: 3,
  totalFiles: 12,
  bytesPerSecond: 50_000_000,
  secondsLeft: (4_000_000_000 - doneBytes) / 50_000_000,
});

class Output {
  text = '';
  constructor(
    readonly isTTY: boolean,
    readonly columns = 200,
  ) {}
  write(text: string): void {
    this.text += text;
  }
}

describe(ProgressLine.name, () => {
  it('redraws one line on a terminal, no wider than it, and clears it at the end', () => {
    const output = new Output(true, 60);
    const line = new ProgressLine(output);
    line.report(progress(1_000_000_000));
    line.report(progress(2_000_000_000));
    expect(output.text).not.toContain('\n');
    const lines = output.text.split('\r\u001b[K').slice(1);
    expect(lines.map((drawn) => drawn.length)).toEqual([59, 59]);
    expect(lines[1]).toContain('████████████░░░░░░░░░░░░  50 %  2.00 GB of 4.00 GB');
    line.end();
    expect(output.text.endsWith('\r\u001b[K')).toBe(true);
  });

  it('writes a line for every ten per cent without a terminal', () => {
    const output = new Output(false);
    const line = new ProgressLine(output);
    for (let done = 0; done <= 4_000_000_000; done += 40_000_000) line.report(progress(done));
    line.end();
    const lines = output.text.trimEnd().split('\n');
    expect(lines).toHaveLength(11);
    expect(lines[5]).toBe(' 50 %  2.00 GB of 4.00 GB  50.0 MB/s  40 s left');
    expect(lines[10]).toBe('100 %  4.00 GB of 4.00 GB  50.0 MB/s');

    output.text = '';
    line.report(progress(0));
    expect(output.text).toBe('  0 %  0 bytes of 4.00 GB  50.0 MB/s  1 min 20 s left\n');
  });
});

describe(describeProgress.name, () => {
  it('leaves out unknown values', () => {
    expect(describeProgress({ ...progress(0), bytesPerSecond: 0, secondsLeft: undefined })).toBe(
      '  0 %  0 bytes of 4.00 GB',
    );
  });
});

describe(formatDuration.name, () => {
  it.each([
    [0.2, '1 s'],
    [59, '59 s'],
    [60, '1 min 00 s'],
    [185, '3 min 05 s'],
    [7800, '2 h 10 min'],
  ])('writes %d s as %s', (seconds, text) => expect(formatDuration(seconds)).toBe(text));
});
