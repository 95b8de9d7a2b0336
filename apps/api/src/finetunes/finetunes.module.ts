import { Module } from '@nestjs/common';
import { TextToImageModule } from '../text-to-image/text-to-image.module';
import { FinetunesController } from './finetunes.controller';

/** Fine-Tunes of a caller. */
@Module({ imports: [TextToImageModule], controllers: [FinetunesController] })
export class FinetunesModule {}
