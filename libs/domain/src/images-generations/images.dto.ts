import { ApiProperty } from '@nestjs/swagger';

/** One picture, in the shape of OpenAI's API. */
export class ImageDto {
  @ApiProperty({ type: String, format: 'uri', required: false, description: 'With `response_format: url`.' })
  url?: string;

  @ApiProperty({
    type: String,
    required: false,
    description: 'With `response_format: b64_json`.',
    example: 'iVBORw0KGgo=',
  })
  b64_json?: string;
}

/** Pictures, in the shape of OpenAI's API. */
export class ImagesDto {
  @ApiProperty({
    type: 'integer',
    description: 'When they were finished, in seconds since the epoch.',
    example: 1795166493,
  })
  created: number;

  @ApiProperty({ type: ImageDto, isArray: true })
  data: ImageDto[];
}
