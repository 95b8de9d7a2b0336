import { type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { misconfiguredExitCode, StartError } from '@app/process';
import type { Config, S3Config } from './config';
import { InvalidValue } from './kinds';
import { credentialsVariables, dependentVariables, s3Variables, type Variables, variables } from './variables';

/** One or more variables are invalid; the message lists each with its accepted values. */
export class ConfigError extends StartError {
  constructor(readonly problems: readonly string[]) {
    super(
      `The environment is not usable:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
      misconfiguredExitCode,
    );
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks every variable the service knows.
 * @throws ConfigError listing every bad variable, not only the first.
 */
export function loadConfig(env: Environment): Config {
  const problems: string[] = [];
  const own = read(variables, env, problems);
  const { publicUrl, modelFallback } = read(dependentVariables, env, problems);
  if (own.queueBackend === 'redis' && !own.redisUrl) problems.push('REDIS_URL is needed when QUEUE_BACKEND is redis.');
  const s3 = own.storage === 's3' ? readS3(env, problems) : undefined;
  if (own.pictureUrls === 'presigned' && !s3) problems.push('PICTURE_URLS can be presigned only when STORAGE is s3.');
  const folders = { dataDir: resolve(own.dataDir), modelsDir: resolve(own.modelsDir) };
  const credentials = readCredentials(env, problems, folders.dataDir);
  for (const field of ['dataDir', 'modelsDir'] as const) {
    const file = fileInTheWay(folders[field]);
    if (file !== undefined) problems.push(`${variables[field][0]} must be a folder, but ${file} is a file.`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return {
    ...own,
    ...folders,
    publicUrl: publicUrl ?? `http://localhost:${own.port}`,
    modelFallback: modelFallback ?? own.databaseUrl === undefined,
    ...(s3 && { s3 }),
    ...credentials,
  };
}

function readCredentials(
  env: Environment,
  problems: string[],
  dataDir: string,
): Pick<Config, 'credentials' | 'lacksCertificate' | 'ownCertificate'> {
  const { mode, certificate, key, signer, prompt = false, ...more } = read(credentialsVariables, env, problems);
  const path = certificate === undefined ? join(dataDir, 'credentials', 'certificate.pem') : resolve(certificate);
  const ownCertificate = { path, isNamed: certificate !== undefined };
  if (mode === 'off') return { lacksCertificate: false, ownCertificate };
  if (certificate === undefined) {
    for (const [name, value] of Object.entries({ CREDENTIALS_KEY: key, CREDENTIALS_SIGNER: signer }))
      if (value !== undefined) problems.push(`CREDENTIALS_CERTIFICATE is needed where ${name} is set.`);
    return { lacksCertificate: true, ownCertificate };
  }
  if ((key === undefined) === (signer === undefined))
    problems.push('CREDENTIALS_CERTIFICATE needs CREDENTIALS_KEY or CREDENTIALS_SIGNER, one of the two.');
  const signing = key === undefined ? { ...(signer !== undefined && { signer }) } : { key: resolve(key) };
  const isRequired = mode === 'required';
  const credentials = { certificate: path, ...signing, ...more, prompt, isRequired };
  return { credentials, lacksCertificate: false, ownCertificate };
}

function readS3(env: Environment, problems: string[]): S3Config {
  const { bucket = '', accessKeyId = '', secretAccessKey = '', ...found } = read(s3Variables, env, problems);
  for (const [field, value] of Object.entries({ bucket, accessKeyId, secretAccessKey }))
    if (value === '') problems.push(`${s3Variables[field as keyof S3Config][0]} is needed when STORAGE is s3.`);
  const { endpoint, publicEndpoint, region = '', forcePathStyle = endpoint !== undefined } = found;
  const addresses = { ...(endpoint && { endpoint }), ...(publicEndpoint && { publicEndpoint }) };
  return { ...addresses, region, bucket, accessKeyId, secretAccessKey, forcePathStyle };
}

/** @returns the fields whose variable is set or has a default; errors are added to `problems` */
function read<T extends object>(table: Variables<T>, env: Environment, problems: string[]): T {
  const found: Partial<T> = {};
  for (const field of Object.keys(table) as (keyof T)[]) {
    const [name, kind, fallback] = table[field];
    const raw = env[name]?.trim() || undefined;
    const value = raw === undefined ? fallback : kind(raw);
    if (value instanceof InvalidValue) problems.push(`${name} ${value.reason}`);
    else if (value !== undefined) found[field] = value;
  }
  return found as T;
}

/**
 * The file that keeps a path from being a folder: the path itself, or one of its parents. What cannot be looked at
 * counts as missing, because whoever uses the folder reports that better.
 */
function fileInTheWay(path: string): string | undefined {
  const found = lookAt(path);
  if (found) return found.isDirectory() ? undefined : path;
  const parent = dirname(path);
  return parent === path ? undefined : fileInTheWay(parent);
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** The address of the database; the launcher passes the embedded one's. @throws ConfigError */
export function databaseUrlOf(config: Config): string {
  if (!config.databaseUrl) throw new ConfigError(['DATABASE_URL is needed; "npm start" brings a database of its own.']);
  return config.databaseUrl;
}

/**
 * Where the worker's health endpoint listens: a health check on this machine uses the loopback address; others may
 * connect only if the service listens on every address.
 */
export function healthHostOf({ host }: Pick<Config, 'host'>): string {
  return ['0.0.0.0', '::'].includes(host) ? host : '127.0.0.1';
}
