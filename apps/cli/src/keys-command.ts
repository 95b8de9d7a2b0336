import { Command, InvalidArgumentError, Option } from 'commander';
import type { ApiKeyScope } from '@app/domain';
import { apiKeyScopes, graceEnd, keyBounds, limits } from '@app/domain';
import { KeyCommands } from './key-commands';
import type { Surroundings } from './run-program';
import { exitCodeOf } from './run-program';

/**
 * Runs `keys create | list | show | revoke | stop | limit | rotate | rotate-webhook-secret` and returns the exit code.
 */
export function runKeys(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  const program = new Command('keys')
    .description('The API keys of the service, in its database: that of DATABASE_URL, or the one in DATA_DIR.')
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) });
  const commands = new KeyCommands(surroundings);
  for (const define of [defineCreate, defineReaders, defineEnders, defineLimit, defineRotations])
    define(program, commands);
  for (const command of program.commands) command.option('--json', 'as JSON');
  // An id may begin with a dash, which commander would read as an option.
  for (const command of program.commands) if (command.name() !== 'create') command.allowUnknownOption();
  return exitCodeOf(program, args, stderr);
}

/** A command of one key, which is named by its id or prefix. */
function ofOneKey(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).argument('<id>', 'its id or prefix');
}

function defineCreate(program: Command, commands: KeyCommands): void {
  program
    .command('create')
    .description('make a key; prints its token once')
    .requiredOption('--name <name>', 'what it is for', readName)
    .option('--scopes <scopes>', `of ${apiKeyScopes.join(', ')}`, readScopes, ['read', 'write'] satisfies ApiKeyScope[])
    .option(
      '--sandbox',
      'no engine draws for it: it gets marked pictures at once, failures and delays on request',
      false,
    )
    .action(commands.create);
}

function defineReaders(program: Command, commands: KeyCommands): void {
  program.command('list').description('all keys').action(commands.list);
  ofOneKey(program, 'show', 'one key, with its webhook secret').action(commands.show);
}

function defineEnders(program: Command, commands: KeyCommands): void {
  ofOneKey(program, 'revoke', 'revoke a key, close its connections and cancel its tasks').action(commands.revoke);
  ofOneKey(program, 'stop', 'cancel all tasks of a key; the key stays valid').action(commands.stop);
}

function defineLimit(program: Command, commands: KeyCommands): void {
  ofOneKey(program, 'limit', 'set the limits of a key; 0 means no limit, "default" the default of the service')
    .option('--rate <count>', 'requests per minute', readCount)
    .option('--queued <count>', 'Generations and Prompts that may wait', readCount)
    .option('--concurrent <count>', 'those that may be drawn at once', readCount)
    .option('--storage <MB>', 'megabytes of pictures and weights', readCount)
    .option('--retention <days>', 'days after which what has finished is deleted, or "keep"', readDays)
    .action(commands.limit);
}

function defineRotations(program: Command, { rotate, rotateSigning }: KeyCommands): void {
  for (const [name, what, action] of [
    ['rotate', 'give a key a new token', rotate],
    ['rotate-webhook-secret', 'give a key a new webhook secret', rotateSigning],
  ] as const)
    ofOneKey(program, name, `${what}; the previous one stays valid for a while`)
      .addOption(
        new Option('--grace <hours>', 'how long the previous one stays valid')
          .argParser(readGrace)
          .default(graceEnd(), `${keyBounds.graceHours.default}`),
      )
      .action(action);
}

/** The name of a key. */
function readName(text: string): string {
  const name = text.trim();
  if (name && name.length <= limits.nameLength) return name;
  throw new InvalidArgumentError(`It must have 1 to ${limits.nameLength} characters.`);
}

/** Comma-separated scopes. */
function readScopes(text: string): ApiKeyScope[] {
  const words = text.split(',').map((word) => word.trim());
  const scopes = apiKeyScopes.filter((scope) => words.includes(scope));
  if (scopes.length === words.length) return scopes;
  throw new InvalidArgumentError(`It must be one or more of ${apiKeyScopes.join(', ')}, with commas.`);
}

/** A count, or `default`. */
function readCount(text: string): number | 'default' {
  if (text === 'default') return text;
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= keyBounds.maxCount) return count;
  throw new InvalidArgumentError(`It must be an integer from 0 to ${keyBounds.maxCount}, or "default".`);
}

/** A number of days, or `keep`. */
function readDays(text: string): number | 'keep' {
  if (text === 'keep') return text;
  const days = Number(text);
  if (/^\d+$/.test(text) && days >= 1 && days <= keyBounds.maxRetentionDays) return days;
  throw new InvalidArgumentError(`It must be an integer from 1 to ${keyBounds.maxRetentionDays}, or "keep".`);
}

/** The end of a grace period given in hours. */
function readGrace(text: string): Date {
  const hours = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && hours <= keyBounds.graceHours.max) return graceEnd(hours);
  throw new InvalidArgumentError(`It must be a number of hours from 0 to ${keyBounds.graceHours.max}.`);
}
