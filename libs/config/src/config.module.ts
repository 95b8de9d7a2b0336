import 'reflect-metadata';
import { JsonLogger } from '@app/observability';
import { type DynamicModule, Global, Module } from '@nestjs/common';
import type { Config } from './config';

/** Injects the configuration. */
export const CONFIG = Symbol('CONFIG');

/** The configuration of the process, and its log. */
@Global()
@Module({})
export class ConfigModule {
  static forRoot(config: Config, logger: JsonLogger): DynamicModule {
    return {
      module: ConfigModule,
      providers: [
        { provide: CONFIG, useValue: config },
        { provide: JsonLogger, useValue: logger },
      ],
      exports: [CONFIG, JsonLogger],
    };
  }
}
