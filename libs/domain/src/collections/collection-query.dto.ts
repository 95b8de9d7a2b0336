import { QueryParameter } from '../fields/fields-of-queries';

/** Whose Collections a list has: the caller's own, or the public ones. */
export class CollectionQueryDto {
  @QueryParameter({
    description: 'The public Collections instead of your own.',
    schema: { type: 'string', enum: ['public'] },
    read: (sent, refuse) => (sent === 'public' ? sent : refuse('must be public, or be left out')),
  })
  scope?: 'public';
}
