import { FieldProblems } from '../errors/field-problems';
import { readParameters } from '../fields/fields-of-queries';
import { UsageQueryDto } from './usage.dto';

describe(UsageQueryDto.name, () => {
  beforeEach(() => void jest.useFakeTimers({ now: Date.parse('2026-03-01T23:59:59.999Z') }));
  afterEach(() => void jest.useRealTimers());

  it.each([
    [{}, { first: '2026-01-31', last: '2026-03-01' }, ['day']],
    [{ to: '2024-03-01', group_by: 'model' }, { first: '2024-02-01', last: '2024-03-01' }, ['model']],
    [
      { from: '2024-02-29', to: '2024-02-29', group_by: 'finetune' },
      { first: '2024-02-29', last: '2024-02-29' },
      ['finetune'],
    ],
  ])('takes %j, by default 30 days by day', (query, days, group) => {
    const problems = new FieldProblems();
    const read = readParameters(UsageQueryDto, query, problems);
    expect([problems.list(), read.days, read.group_by]).toEqual([[], days, group]);
  });

  it.each([
    [{ from: '2026-03-02', to: 'today', group_by: 'year' }, 'to', 'group_by'],
    [{ from: '2026-03-02', group_by: 'year' }, 'from', 'group_by'],
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
    const problems = new FieldProblems();
    readParameters(UsageQueryDto, query, problems);
    expect(problems.list().map(({ parameter }) => parameter)).toEqual(parameters);
  });
});
