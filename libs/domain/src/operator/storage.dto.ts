import { ApiProperty } from '@nestjs/swagger';

/** What files take. */
class StoredBytes {
  @ApiProperty({ type: 'integer', description: 'Pictures.' })
  picture_bytes: number;

  @ApiProperty({ type: 'integer', description: 'Weights of Fine-Tunes.' })
  weight_bytes: number;

  @ApiProperty({ type: 'integer', description: 'Kept for uploads in progress.' })
  upload_bytes: number;
}

/** What one key stores. */
export class KeyStorageDto extends StoredBytes {
  @ApiProperty({ type: String, minLength: 24, maxLength: 24, description: 'The id of the API key.' })
  key_id: string;

  @ApiProperty({ type: String, description: 'Its name.', example: 'web shop' })
  key_name: string;

  @ApiProperty({ type: 'integer', nullable: true, description: 'What it may store; null without a limit.' })
  limit_bytes: number | null;
}

/** What all keys store, and the room that is left. */
export class StorageDto extends StoredBytes {
  @ApiProperty({
    type: 'integer',
    nullable: true,
    description: 'Free room on the disk of the api process; the fullest, if it has several.',
  })
  disk_free_bytes: number | null;

  @ApiProperty({ type: 'integer', nullable: true, description: 'The size of this disk.' })
  disk_total_bytes: number | null;

  @ApiProperty({ type: KeyStorageDto, isArray: true, description: 'The 100 keys that store most.' })
  keys: KeyStorageDto[];
}
