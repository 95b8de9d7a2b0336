import { limits } from '../common/limits';
import { ArrayField, TextField } from '../fields/fields';
import { CreateStyleDto } from '../styles/create-style.dto';

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
