import { ApiProperty } from '@nestjs/swagger';

/** Whose something is. */
export class OfKey {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24, description: 'Whose it is: the id of the API key.' })
  key_id: string;

  @ApiProperty({ type: String, description: 'The name of this key.', example: 'web shop' })
  key_name: string;
}
