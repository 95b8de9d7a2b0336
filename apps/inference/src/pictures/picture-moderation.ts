import { type Config, CONFIG } from '@app/config';
import { ModerationHook } from '@app/moderation';
import { JsonLogger, Metrics } from '@app/observability';
import { Inject, Injectable } from '@nestjs/common';
import sharp from 'sharp';
import type { RgbImage } from '../engine/engine-protocol';

/** The longest edge of what is shown, in pixels: moderations scale what they are shown themselves. */
const shownEdge = 768;

/** Shows drawn pictures to the operator's moderation, if there is one. */
@Injectable()
export class PictureModeration {
  private readonly hook: Pick<ModerationHook, 'flaggedPicture'> | undefined;

  constructor(@Inject(CONFIG) config: Config, logger: JsonLogger, metrics: Metrics) {
    this.hook = ModerationHook.of(config, logger, metrics);
  }

  get isOn(): boolean {
    return this.hook !== undefined;
  }

  /**
   * How the audit tells that it flags a picture, with its categories; undefined if it does not.
   * @throws ModerationDownError if it cannot be asked and that refuses
   */
  async flags({ data, width, height }: RgbImage): Promise<string | undefined> {
    if (!this.hook) return undefined;
    const jpeg = await sharp(data, { raw: { width, height, channels: 3 } })
      .resize(shownEdge, shownEdge, { fit: 'inside', withoutEnlargement: true })
      .jpeg({ quality: 85 })
      .toBuffer();
    const categories = await this.hook.flaggedPicture(`data:image/jpeg;base64,${jpeg.toString('base64')}`);
    return categories && ['moderation', categories.join(', ')].filter(Boolean).join(': ');
  }
}
