import type { Operation, Responses } from './shared-errors';
import { shareErrors } from './shared-errors';

const operation = (description: string): Operation => ({
  operationId: 'draw',
  responses: {
    '201': { description: 'Done.' },
    '404': { description, content: { 'application/problem+json': {} } },
  },
});

describe(shareErrors, () => {
  it('replaces the same error of several routes with one, and no other response', () => {
    const shared: Responses = {};
    const both = [operation('Nothing.'), operation('Nothing.')];
    for (const each of both) shareErrors(each, shared);
    expect(shared).toEqual({ Problem404: operation('Nothing.').responses['404'] });
    for (const { responses } of both)
      expect(responses).toEqual({
        '201': { description: 'Done.' },
        '404': { $ref: '#/components/responses/Problem404' },
      });
  });

  it('refuses two that differ', () => {
    const shared: Responses = {};
    shareErrors(operation('Nothing.'), shared);
    expect(() => shareErrors(operation('Nothing here.'), shared)).toThrow('draw documents the error 404');
  });
});
