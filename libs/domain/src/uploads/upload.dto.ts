import { Id, Integer, Text, Time, TimeOrNull } from '../fields/fields-of-answers';
import { pictureUrl } from './picture-url';
import { type UploadedPicture, uploadLifeHours } from './uploaded-picture';

/** An uploaded picture as stored: upright, only its pixels and their profile. */
export class UploadDto {
  @Id() id: string;
  @Text('Where it can be read by whoever knows this URL, and what requests name it by.') url: string;
  @Text('`image/png`, `image/jpeg` or `image/webp`, as its first bytes say.') content_type: string;
  @Integer('In pixels, upright.') width: number;
  @Integer('In pixels, upright.') height: number;
  @Integer('Of the file that is kept, which need not be those of the one that was sent.') bytes: number;
  @Time('When it had come.') created_at: string;
  @TimeOrNull('When it goes; null as long as a record uses it.') expires_at: string | null;

  /** @param isUsed by a record */
  static from(upload: Omit<UploadedPicture, 'ownerId' | 'accountId'>, isUsed: boolean, publicUrl: string): UploadDto {
    const { id, contentType, width, height, bytes, createdAt } = upload;
    const expiresAt = new Date(createdAt.getTime() + uploadLifeHours * 3_600_000);
    return {
      id,
      url: pictureUrl(publicUrl, upload),
      content_type: contentType,
      width,
      height,
      bytes,
      created_at: createdAt.toISOString(),
      expires_at: isUsed ? null : expiresAt.toISOString(),
    };
  }
}
