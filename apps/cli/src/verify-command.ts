import { resolve } from 'node:path';
import { loadConfig } from '@app/config';
import { CredentialsError, ownCertificates, type PictureReport, PictureVerifier } from '@app/credentials';
import { formatOfSource } from '@app/pictures';
import { misconfiguredExitCode, StartError } from '@app/process';
import { CliError, exitCodeOf, programOf, type Surroundings } from './run-program';

/** Of the last word for each sentence. */
const states = {
  none: 'It has no Content Credentials.',
  valid: 'Its Content Credentials hold: nothing has changed since it was signed.',
  expired:
    'Nothing has changed in it, but the certificate has expired, and no time stamp that can be believed proves that it was signed before.',
  invalid: 'Its Content Credentials do not hold.',
};

/** Runs `verify <picture>`. @returns the exit code */
export function runVerify(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const program = programOf('verify', surroundings)
    .description('Says what a picture says of itself, whether its Content Credentials hold, and which record made it.')
    .argument('<picture>', 'a PNG, JPEG or WebP')
    .option('--json', 'as JSON')
    .action((file: string, { json }: { json?: true }) => verify(file, json, surroundings));
  return exitCodeOf(program, args, surroundings.stderr);
}

/** @throws CliError for credentials that do not hold, and for what is no picture; StartError for certificates */
async function verify(file: string, json: true | undefined, { env, stdout }: Surroundings): Promise<void> {
  const own = await ownCertificates(loadConfig(env)).catch((error: Error) => {
    throw error instanceof CredentialsError ? new StartError(error.message, misconfiguredExitCode) : error;
  });
  const verifier = new PictureVerifier();
  const path = resolve(file);
  try {
    const report = await verifier.verify('cli', { path, type: await typeOf(path), own });
    stdout.write(`${json ? jsonOf(report) : linesOf(report).join('\n')}\n`);
    const { state } = report.credentials;
    if (state === 'invalid') throw new CliError(`${file} was changed, or was never in order.`);
    if (state === 'expired') throw new CliError(`${file} is signed with a certificate that has expired.`);
  } finally {
    verifier.close();
  }
}

/** No record is looked up here: the words are not those of `POST /v1/verify`. */
function jsonOf({ record, ...said }: PictureReport): string {
  const claimed = record && { id: record.id, drawn_index: record.index };
  return JSON.stringify({ ...said, claimed_record: claimed }, undefined, 2);
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
  const { state, own, issuer, signed_at: time, actions, ingredients, problems } = credentials;
  const who = own
    ? ', with a certificate of yours'
    : state === 'invalid'
      ? ''
      : ', with a certificate that is none of yours';
  return [
    type === null ? 'It does not say what it is.' : `It says that it is: ${type}`,
    states[state],
    ...(problems.length > 0 ? [`  because of: ${problems.join(', ')}`] : []),
    ...(state === 'none' ? [] : [`Signed by: ${issuer ?? 'nobody who is named'}${who}${time ? `, at ${time}` : ''}`]),
    ...actions.map(({ action, agent, agent_version: version }) =>
      [`  ${action}`, agent && `by ${agent}`, version && `(${version})`].filter(Boolean).join(' '),
    ),
    ...ingredients.map((each) => `  from ${each.title ?? 'a picture'}, whose own credentials are: ${each.state}`),
    ...(record ? [`${own ? 'Record' : 'It claims to be of the record'}: ${record.id}, picture ${record.index}`] : []),
  ];
}
