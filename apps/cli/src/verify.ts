import 'reflect-metadata';
import { resolve } from 'node:path';
import { type PictureReport, PictureVerifier } from '@app/credentials';
import { formatOfSource } from '@app/pictures';
import { Command } from 'commander';
import { CliError, runProgram } from './run-program';

/** Of the last word for each sentence. */
const states = {
  none: 'It has no Content Credentials.',
  valid: 'Its Content Credentials hold: nothing has changed since it was signed.',
  invalid: 'Its Content Credentials do not hold.',
};

/** @throws CliError for credentials that do not hold, and for what is no picture */
async function verify(file: string, { json }: { json?: true }): Promise<void> {
  const verifier = new PictureVerifier();
  const path = resolve(file);
  try {
    const report = await verifier.verify('cli', { path, type: await typeOf(path) });
    process.stdout.write(`${json ? JSON.stringify(report, undefined, 2) : linesOf(report).join('\n')}\n`);
    if (report.credentials.state === 'invalid') throw new CliError(`${file} was changed, or was never in order.`);
  } finally {
    verifier.close();
  }
}

/** @throws CliError for what is no picture */
async function typeOf(path: string): Promise<string> {
  try {
    return `image/${await formatOfSource(path)}`;
  } catch (error) {
    throw new CliError(`${path} ${(error as Error).message}.`);
  }
}

function linesOf({ source_type: type, credentials, record }: PictureReport): string[] {
  const { state, issuer, signed_at: time, actions, ingredients, problems } = credentials;
  return [
    type === null ? 'It does not say what it is.' : `It says that it is: ${type}`,
    states[state],
    ...(problems.length > 0 ? [`  because of: ${problems.join(', ')}`] : []),
    ...(state === 'none' ? [] : [`Signed by: ${issuer ?? 'nobody who is named'}${time ? `, at ${time}` : ''}`]),
    ...actions.map(({ action, agent, agent_version: version }) =>
      [`  ${action}`, agent && `by ${agent}`, version && `(${version})`].filter(Boolean).join(' '),
    ),
    ...ingredients.map((each) => `  from ${each.title ?? 'a picture'}, whose own credentials are: ${each.state}`),
    ...(record ? [`Record: ${record.id}, picture ${record.index}`] : []),
  ];
}

const program = new Command('verify')
  .description('Says what a picture says of itself, whether its Content Credentials hold, and which record made it.')
  .argument('<picture>', 'a PNG, JPEG or WebP')
  .option('--json', 'as JSON')
  .action(verify);

void runProgram(program);
