import { FieldProblems } from '../errors/field-problems';
import { parametersOf, QueryParameter, readParameters, WordParameter } from './fields-of-queries';

class FilterQueryDto {
  @WordParameter({ values: ['queued', 'failed'] })
  status?: 'queued' | 'failed';
}

class PictureFilterQueryDto extends FilterQueryDto {
  @QueryParameter({ schema: { type: 'integer' }, read: (sent) => Number(sent) })
  steps?: number;
}

describe(parametersOf, () => {
  it('has those of the class that a DTO extends, which keeps its own', () => {
    expect([...parametersOf(PictureFilterQueryDto).keys()]).toEqual(['status', 'steps']);
    expect([...parametersOf(FilterQueryDto).keys()]).toEqual(['status']);
  });

  it('refuses a class without parameters', () => {
    expect(() => parametersOf(Object)).toThrow('Object is no DTO');
  });
});

describe(readParameters, () => {
  it('reads what the class that a DTO extends takes', () => {
    const read = (query: Record<string, string>) => {
      const problems = new FieldProblems();
      return [
        { ...readParameters(PictureFilterQueryDto, query, problems) },
        problems.list().map((each) => each.parameter),
      ];
    };
    expect(read({ status: 'failed', steps: '4' })).toEqual([{ status: 'failed', steps: 4 }, []]);
    expect(read({ status: 'done', steps: '4' })).toEqual([expect.anything(), ['status']]);
  });
});

describe(QueryParameter, () => {
  it('is only for a property that can have all that it reads, which the compiler checks', () => {
    class WrongQueryDto {
      // @ts-expect-error -- it reads a number
      @QueryParameter({ schema: { type: 'integer' }, read: (sent) => Number(sent) })
      steps?: string;

      // @ts-expect-error -- it reads a word that the property cannot have
      @WordParameter({ values: ['queued', 'failed'] })
      status?: 'queued';
    }
    expect(parametersOf(WrongQueryDto).size).toBe(2);
  });
});
