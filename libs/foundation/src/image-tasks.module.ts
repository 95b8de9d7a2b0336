import type { Config } from '@app/config';
import { ImageTaskLifeCycle } from '@app/image-tasks';
import { Transactions } from '@app/queue';
import { Global, Module } from '@nestjs/common';
import { CONFIG } from './tokens';

/** The moves of an image task. */
@Global()
@Module({
  providers: [
    {
      provide: ImageTaskLifeCycle,
      inject: [Transactions, CONFIG],
      useFactory: (transactions: Transactions, { maxConcurrentPerKey }: Config) =>
        new ImageTaskLifeCycle(transactions, maxConcurrentPerKey),
    },
  ],
  exports: [ImageTaskLifeCycle],
})
export class ImageTasksModule {}
