import { ApiProperty } from '@nestjs/swagger';

/** A Collection as every route shows it. */
export class CollectionDto {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24 })
  id: string;

  @ApiProperty({ type: String })
  name: string;

  @ApiProperty({
    type: String,
    format: 'uri',
    nullable: true,
    description: 'URL of its main image: the thumbnail of its first Style; null until there is one.',
  })
  thumbnail: string | null;
}
