import type { Config } from '@app/config';
import { databaseUrlOf } from '@app/config';
import { NotificationListener } from '@app/database';
import { CONFIG } from '@app/config';
import { JsonLogger } from '@app/observability';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { Inject, Injectable } from '@nestjs/common';

/** PostgreSQL notifications between processes, on this process's one listening connection. */
@Injectable()
export class Notifications implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly handlers: Record<string, (payload: string) => void> = {};
  private readonly listener: NotificationListener;

  constructor(@Inject(CONFIG) config: Config, logger: JsonLogger) {
    this.listener = new NotificationListener(databaseUrlOf(config), this.handlers, (reason) =>
      logger.warnSparingly('the connection that hears of changes dropped', { reason }),
    );
  }

  /** Call it from a constructor, because the channels are opened when the application starts. */
  on(channel: string, handle: (payload: string) => void): void {
    const earlier = this.handlers[channel] as ((payload: string) => void) | undefined;
    this.handlers[channel] = (payload) => {
      earlier?.(payload);
      handle(payload);
    };
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.listener.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.listener.close();
  }
}
