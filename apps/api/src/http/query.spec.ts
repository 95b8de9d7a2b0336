import { PageQueryDto, UsageQueryDto } from '@app/domain/http';
import { queriesOf, TakesQuery } from '../docs/takes';
import { ValidQuery } from './query';

describe(ValidQuery, () => {
  it('takes the query of the type of its parameter, after those that the route takes anyway', () => {
    class Controller {
      @TakesQuery(PageQueryDto)
      findAll(this: void, _owner: string, @ValidQuery() { days }: UsageQueryDto): unknown {
        return days;
      }
    }
    expect(queriesOf(Controller.prototype.findAll)).toEqual([PageQueryDto, UsageQueryDto]);
  });

  it('refuses a type that is no DTO of a query', () => {
    const define = () => {
      class Controller {
        findAll(@ValidQuery() _query: Pick<UsageQueryDto, 'from'>): void {}
      }
      return Controller;
    };
    expect(define).toThrow('Object is no DTO');
  });
});
