import { QueryParameter } from '../fields/fields-of-queries';
import { limits } from '../common/limits';
import { ArrayField } from '../fields/fields-of-arrays';
import { TextField } from '../fields/fields';
import { CreateStyleDto } from '../styles/style.dto';
import { Id, Text, TextOrNull } from '../fields/fields-of-answers';

/** The Collections that a list has: the caller's own, or the public ones. */
export class CollectionQueryDto {
  @QueryParameter({
    description: 'The public Collections instead of your own.',
    schema: { type: 'string', enum: ['public'] },
    read: (sent, refuse) => (sent === 'public' ? sent : refuse('must be public, or be left out')),
  })
  scope?: 'public';
}

/** Body of `POST /v1/prompts/collections`. */
export class CreateCollectionDto {
  @TextField({ description: 'Name of the Collection.', maxLength: limits.nameLength, example: 'Night scenes' })
  name: string;

  @ArrayField({
    description: 'Its Styles in their order, each made from one of your Prompts.',
    min: 0,
    max: limits.arrayLength,
    element: () => CreateStyleDto,
  })
  styles: CreateStyleDto[];
}

/** A Collection as every route shows it. */
export class CollectionDto {
  @Id() id: string;
  @Text() name: string;
  @TextOrNull('URL of its main image: the thumbnail of its first Style; null until there is one.', { format: 'uri' })
  thumbnail: string | null;
}
