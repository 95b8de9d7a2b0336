import { Command, InvalidArgumentError, Option } from 'commander';
import {
  type ApiKeyScope,
  apiKeyScopes,
  defaultScopes,
  graceEnd,
  isPrintable,
  keyBounds,
  keyFilters,
  limits,
} from '@app/domain';
import { KeyCommands } from './key-commands';
import { exitCodeOf, type Surroundings } from './run-program';

/** Runs `keys` with one of the commands below. @returns the exit code */
export function runKeys(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  const program = new Command('keys')
    .description('The API keys of the service, in its database: that of DATABASE_URL, or the one in DATA_DIR.')
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) });
  const commands = new KeyCommands(surroundings);
  program
    .command('create')
    .description('make a key; prints its token once')
    .requiredOption('--name <name>', 'what it is for', readName)
    .option('--account <name>', 'the account that it joins or begins: its keys share their records', readName)
    .option('--scopes <scopes>', `of ${apiKeyScopes.join(', ')}; write includes read, and admin both`, readScopes, [
      ...defaultScopes,
    ])
    .option(
      '--sandbox',
      'no engine draws for it: it gets marked pictures at once, failures and delays on request',
      false,
    )
    .action(commands.create);
  program.command('list').description('all keys').action(commands.list);
  defineOfOneKey(program, commands);
  for (const command of program.commands) command.option('--json', 'as JSON');
  return exitCodeOf(program, args, stderr);
}

function defineOfOneKey(program: Command, commands: KeyCommands): void {
  const ofOneKey = (name: string, description: string): Command =>
    // An id may begin with a dash, which commander would read as an option.
    program.command(name).description(description).argument('<id>', 'its id or prefix').allowUnknownOption();
  ofOneKey('show', 'one key, with its webhook secret').action(commands.show);
  ofOneKey('account', 'name the account that a key is alone in, so that new keys can join it')
    .argument('<name>', 'its name, for good', readName)
    .action(commands.account);
  ofOneKey('revoke', 'revoke a key, close its connections and cancel its tasks').action(commands.revoke);
  ofOneKey('stop', 'cancel all tasks of a key; the key stays valid').action(commands.stop);
  const readCount = integer(0, keyBounds.maxCount, 'default');
  ofOneKey('limit', 'set the limits of a key; 0 means no limit, "default" the default of the service')
    .option('--rate <count>', 'requests per minute', readCount)
    .option('--queued <count>', 'Generations and Prompts that may wait', readCount)
    .option('--concurrent <count>', 'those that may be drawn at once', readCount)
    .option('--storage <MB>', 'megabytes of pictures and weights', readCount)
    .option(
      '--retention <days>',
      'days after which what has finished is deleted, or "keep"',
      integer(1, keyBounds.maxRetentionDays, 'keep'),
    )
    .option(
      '--training-uploads <keep|delete>',
      'whether they stay until the Fine-Tune is deleted, or go as its training ends',
      readKeeps,
    )
    .addOption(new Option('--filter <what>', 'what becomes of flagged pictures').choices(keyFilters))
    .action(commands.limit);
  const grace = new Option('--grace <hours>', 'how long the previous one stays valid')
    .argParser(readGrace)
    .default(graceEnd(), `${keyBounds.graceHours.default}`);
  const untilThen = 'the previous one stays valid for a while';
  ofOneKey('rotate', `give a key a new token; ${untilThen}`).addOption(grace).action(commands.rotate);
  ofOneKey('rotate-webhook-secret', `give a key a new webhook secret; ${untilThen}`)
    .addOption(grace)
    .action(commands.rotateSigning);
}

function readName(text: string): string {
  const name = text.trim();
  if (!isPrintable(name)) throw new InvalidArgumentError('It must have no control character.');
  if (name && name.length <= limits.nameLength) return name;
  throw new InvalidArgumentError(`It must have 1 to ${limits.nameLength} characters.`);
}

function readScopes(text: string): ApiKeyScope[] {
  const words = text.split(',').map((word) => word.trim());
  const scopes = apiKeyScopes.filter((scope) => words.includes(scope));
  if (scopes.length === words.length) return scopes;
  throw new InvalidArgumentError(`It must be one or more of ${apiKeyScopes.join(', ')}, with commas.`);
}

function readKeeps(text: string): boolean {
  if (text === 'keep' || text === 'delete') return text === 'keep';
  throw new InvalidArgumentError('It must be "keep" or "delete".');
}

const integer =
  (least: number, most: number, none: string) =>
  (text: string): number | string => {
    if (text === none) return text;
    const count = Number(text);
    if (/^\d+$/.test(text) && count >= least && count <= most) return count;
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}, or "${none}".`);
  };

function readGrace(text: string): Date {
  const hours = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && hours <= keyBounds.graceHours.max) return graceEnd(hours);
  throw new InvalidArgumentError(`It must be a number of hours from 0 to ${keyBounds.graceHours.max}.`);
}
