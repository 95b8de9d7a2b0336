import { QueryParameter } from '../fields/fields-of-queries';
import { isIdentifier } from './identifier';
import { limits } from './limits';
import { Text } from '../fields/fields-of-answers';

const { min, max } = limits.page;

/** A cursor is shorter than an id, so that the two cannot be confused. */
const cursor = /^[A-Za-z0-9_-]{22}$/;

/** The sentence about an `after` that is no place in the list. */
export const acceptedAfter = 'must be the id of an element of this list, or be taken from the Link header of a page';

/** The requested part of a list; without `limit`, all of it. */
export class PageQueryDto {
  @QueryParameter({
    description:
      'How many elements a page has. The `Link` header of each page but the last is the address of the next one. Without `limit` the list is complete.',
    schema: { type: 'integer', minimum: min, maximum: max },
    read: (sent, refuse) => {
      const isAccepted = /^\d+$/.test(sent) && Number(sent) >= min && Number(sent) <= max;
      return isAccepted ? Number(sent) : refuse(`must be an integer from ${min} to ${max}`);
    },
  })
  limit?: number;

  @QueryParameter({
    description:
      'Where the page begins, as the address in the `Link` header of the page before has it: a text that is no id, and stays valid when elements are deleted. The id of the last element of that page is taken as well.',
    schema: { type: 'string', pattern: '^(?:[A-Za-z0-9_-]{22}|[A-Za-z0-9_-]{24})$' },
    read: (sent, refuse) => (isIdentifier(sent) || cursor.test(sent) ? sent : refuse(acceptedAfter)),
  })
  after?: string;
}

/** Says that a resource was deleted. */
export class DeletedDto {
  @Text('', { example: 'Generation 4f2kQ0yq8S3zVn1xRb7TdA9w has been deleted successfully.' }) delete: string;

  /** @param resource as the contract spells it, such as `Generation`. */
  static of(resource: string, id: string): DeletedDto {
    return { delete: `${resource} ${id} has been deleted successfully.` };
  }
}
