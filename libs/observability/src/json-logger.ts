import type { LoggerService } from '@nestjs/common';
import pino from 'pino';
import { Repetitions } from './repetitions';

/** The least important lines that are written. */
export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** Fields of a log line. Never a key, a webhook secret or (above debug) a prompt. */
export type LogFields = Record<string, unknown>;

/** Contexts in which Nest logs every module and route at startup. */
const framework: ReadonlySet<string> = new Set([
  'InstanceLoader',
  'NestApplication',
  'NestFactory',
  'RouterExplorer',
  'RoutesResolver',
]);

/** The context in which Nest logs why it could not start; `main` says that to the user. */
const startFailure = 'ExceptionHandler';

/** JSON log lines on standard output, for Nest and for our own services. */
export class JsonLogger implements LoggerService {
  private readonly pino: pino.Logger;
  private readonly repetitions = new Repetitions();

  constructor(process: string, level: LogLevel, destination?: pino.DestinationStream) {
    const options: pino.LoggerOptions = { level, base: { process }, timestamp: pino.stdTimeFunctions.isoTime };
    this.pino = destination ? pino(options, destination) : pino(options);
  }

  log(message: unknown, ...rest: unknown[]): void {
    const context = rest.at(-1);
    this.write(typeof context === 'string' && framework.has(context) ? 'debug' : 'info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write(rest.at(-1) === startFailure ? 'debug' : 'error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  /** For warnings that may come a thousand times a second in an outage: repetitions become one line with a count. */
  warnSparingly(message: string, fields: LogFields & { reason: string }): void {
    this.writeSparingly('warn', message, fields);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
  }

  private writeSparingly(level: pino.Level, message: string, fields: LogFields & { reason: string }): void {
    this.repetitions.write(`${message} ${fields.reason}`, (repeated) =>
      this.write(level, message, [{ ...fields, ...(repeated > 0 && { repeated }) }]),
    );
  }

  /** Nest passes its context as the last string; our code passes one object of fields. */
  private write(level: pino.Level, message: unknown, rest: unknown[]): void {
    const fields: LogFields = {};
    for (const item of rest) {
      if (item instanceof Error) fields.err = pino.stdSerializers.err(item);
      else if (typeof item === 'string') fields[item.includes('\n') ? 'stack' : 'context'] = item;
      else if (item && typeof item === 'object') Object.assign(fields, item);
    }
    if (message instanceof Error)
      this.pino[level]({ ...fields, err: pino.stdSerializers.err(message) }, message.message);
    else this.pino[level](fields, typeof message === 'string' ? message : JSON.stringify(message));
  }
}
