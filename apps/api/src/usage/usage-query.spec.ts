import { InvalidError } from '@app/domain';
import { UsagePipe } from './usage-query';

describe(UsagePipe.name, () => {
  const pipe = new UsagePipe(() => Date.parse('2026-03-01T23:59:59.999Z'));

  it('takes the last 30 days by day when nothing is said', () => {
    expect(pipe.transform({})).toEqual({ from: '2026-01-31', to: '2026-03-01', groupBy: 'day' });
  });

  it('counts 30 days back from `to`', () => {
    expect(pipe.transform({ to: '2024-03-01', group_by: 'model' })).toEqual({
      from: '2024-02-01',
      to: '2024-03-01',
      groupBy: 'model',
    });
  });

  it('takes one day', () => {
    expect(pipe.transform({ from: '2024-02-29', to: '2024-02-29', group_by: 'finetune' })).toEqual({
      from: '2024-02-29',
      to: '2024-02-29',
      groupBy: 'finetune',
    });
  });

  it.each([
    [{ from: '2026-03-02', to: 'today', group_by: 'year' }, 'to', 'group_by'],
    [{ from: 'x', group_by: 'year' }, 'from', 'group_by'],
    [{ from: '2025-02-29' }, 'from'],
    [{ from: '2025-2-1' }, 'from'],
    [{ from: '0000-01-01' }, 'from'],
    [{ from: '' }, 'from'],
    [{ from: ['2025-01-01', '2025-01-02'] }, 'from'],
    [{ from: '2026-03-02' }, 'from'],
    [{ from: '2026-03-02', to: '2026-03-01' }, 'from'],
    [{ to: 'today' }, 'to'],
    [{ to: '2026-13-01' }, 'to'],
    [{ group_by: 'year' }, 'group_by'],
    [{ group_by: ['day'] }, 'group_by'],
  ])('refuses %j and names the parameters', (query, ...parameters) => {
    try {
      pipe.transform(query);
    } catch (error) {
      expect(error).toBeInstanceOf(InvalidError);
      expect((error as InvalidError).fields?.map((field) => field.parameter)).toEqual(parameters);
      return;
    }
    throw new Error('It was accepted.');
  });
});
