import { ApiProperty } from '@nestjs/swagger';

/** A Style as every route shows it. */
export class StyleDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String })
  name: string;

  @ApiProperty({
    type: String,
    format: 'uri',
    nullable: true,
    description: 'URL of the first picture of the Prompt it was made from, 256 x 256 pixels; null until there is one.',
  })
  thumbnail: string | null;
}
