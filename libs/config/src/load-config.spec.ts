import { join, resolve } from 'node:path';
import { ConfigError, databaseUrlOf, loadConfig } from './load-config';

describe(loadConfig.name, () => {
  it('fills in every default of the embedded set-up', () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      port: 3000,
      host: '127.0.0.1',
      publicUrl: 'http://localhost:3000',
      queueBackend: 'postgres',
      storage: 'file',
      devices: 'auto',
      modelFallback: true,
      webhookAllowPrivate: false,
      picturesAllowPrivate: false,
      rateLimitPerMinute: 600,
      maxQueuedPerKey: 1000,
      maxConcurrentPerKey: 0,
      storageMbPerKey: 20_000,
      logLevel: 'info',
    });
    expect(config.databaseUrl).toBeUndefined();
  });

  it('turns the stand-in model off by default when the database is external', () => {
    expect(loadConfig({ DATABASE_URL: 'postgres://u:p@db/x' }).modelFallback).toBe(false);
    expect(loadConfig({ DATABASE_URL: 'postgres://u:p@db/x', MODEL_FALLBACK: 'on' }).modelFallback).toBe(true);
  });

  it.each(['a#b', 'a/b', 'a?b', 'a%b', 'a b', '1/2', '1#2'])(
    'says how the password %j of a database is written, and takes it so',
    (password) => {
      const read = (text: string) => loadConfig({ DATABASE_URL: `postgres://u:${text}@db:5432/x` }).databaseUrl;
      expect(() => read(password)).toThrow('# is %23');
      expect(new URL(read(encodeURIComponent(password))!).hostname).toBe('db');
    },
  );

  it.each(['postgres://u:a@b@db/x', 'postgres://u:p@db/x?application_name=a@b', 'postgres:///x?host=/run/pg'])(
    'takes %s, which can be read in one way only',
    (given) => expect(loadConfig({ DATABASE_URL: given }).databaseUrl).toBe(given),
  );

  it('reads several devices', () => {
    expect(loadConfig({ DEVICE: 'cuda:0,cuda:1' }).devices).toEqual(['cuda:0', 'cuda:1']);
    expect(loadConfig({ DEVICE: 'webgpu' }).devices).toEqual(['webgpu']);
  });

  it('sets no memory limit for the engines unless the variable is set', () => {
    expect(loadConfig({}).inferenceMemoryMb).toBeUndefined();
    expect(loadConfig({ INFERENCE_MEMORY_MB: '4096' }).inferenceMemoryMb).toBe(4096);
    expect(() => loadConfig({ INFERENCE_MEMORY_MB: 'all' })).toThrow('INFERENCE_MEMORY_MB');
  });

  it('names every file by its whole path', () => {
    const files = { CREDENTIALS_CERTIFICATE: 'c.pem', CREDENTIALS_KEY: 'k.pem', CREDENTIALS_OWN: 'o.pem' };
    const { credentials, credentialsOwn, promptRules } = loadConfig({ ...files, PROMPT_RULES: 'r.txt' });
    const found = [credentials?.certificate, credentials?.key, credentialsOwn, promptRules];
    expect(found).toEqual(['c.pem', 'k.pem', 'o.pem', 'r.txt'].map((file) => resolve(file)));
  });

  it('signs with a certificate and one thing that has its key, unless it is told not to', () => {
    const files = { CREDENTIALS_CERTIFICATE: '/run/c.pem', CREDENTIALS_KEY: '/run/k.pem' };
    const signed = { certificate: '/run/c.pem', key: '/run/k.pem', prompt: false, isRequired: true };
    expect(loadConfig({}).credentials).toBeUndefined();
    const lacking = [{}, { CREDENTIALS: ' off ' }, { CREDENTIALS: 'optional' }, files];
    expect(lacking.map((env) => loadConfig(env).lacksCertificate)).toEqual([true, false, true, false]);
    expect(loadConfig(files).credentials).toEqual(signed);
    expect(loadConfig({ ...files, CREDENTIALS: 'optional' }).credentials).toEqual({ ...signed, isRequired: false });
    expect(loadConfig({ ...files, CREDENTIALS: 'off' }).credentials).toBeUndefined();
    const oneOfTwo = 'CREDENTIALS_CERTIFICATE needs CREDENTIALS_KEY or CREDENTIALS_SIGNER, one of the two.';
    expect(() => loadConfig({ CREDENTIALS_CERTIFICATE: '/run/c.pem' })).toThrow(oneOfTwo);
    expect(() => loadConfig({ ...files, CREDENTIALS_SIGNER: 'https://kms.example' })).toThrow(oneOfTwo);
    expect(() => loadConfig({ CREDENTIALS_KEY: '/run/k.pem' })).toThrow('CREDENTIALS_CERTIFICATE is needed');
  });

  it('takes no password in a URL that logs show, and does not repeat it', () => {
    for (const name of ['CREDENTIALS_SIGNER', 'CREDENTIALS_TIME_STAMP', 'MODERATION_URL'])
      expect(() => loadConfig({ [name]: 'https://somebody:secret@kms.example' })).toThrow(
        new RegExp(`${name} must be a URL without a user and a password\\.(?![^]*secret)`),
      );
    expect(loadConfig({ MODERATION_URL: 'https://kms.example/a@b' }).moderationUrl).toBe('https://kms.example/a@b');
  });

  it('names every bad variable at once', () => {
    const read = () =>
      loadConfig({ PORT: 'x', DEVICE: 'gpu', LOG_LEVEL: 'loud', QUEUE_BACKEND: 'redis', STORAGE: 's3' });
    expect(read).toThrow(ConfigError);

    try {
      read();
    } catch (error) {
      const names = (error as ConfigError).problems.map((problem) => problem.split(' ')[0]).sort();
      expect(names).toEqual(
        ['DEVICE', 'LOG_LEVEL', 'PORT', 'REDIS_URL', 'S3_ACCESS_KEY_ID', 'S3_BUCKET', 'S3_SECRET_ACCESS_KEY'].sort(),
      );
    }
  });

  it('names a file where there must be a folder, and says nothing of a folder that is not there yet', () => {
    const inside = join(__filename, 'models');
    for (const [name, path] of [
      ['DATA_DIR', __filename],
      ['MODELS_DIR', inside],
    ])
      expect(() => loadConfig({ [name]: path })).toThrow(
        `The environment is not usable:\n  ${name} must be a folder, but ${__filename} is a file.`,
      );
    const missing = join(__dirname, 'none', 'data');
    expect(loadConfig({ DATA_DIR: missing }).dataDir).toBe(missing);
  });

  it('rejects a metrics token that is easy to guess', () => {
    expect(loadConfig({}).metricsToken).toBeUndefined();
    expect(loadConfig({ METRICS_TOKEN: '0123456789abcdef' }).metricsToken).toBe('0123456789abcdef');
    for (const token of ['short', 'with a space in the midst of it'])
      expect(() => loadConfig({ METRICS_TOKEN: token })).toThrow('METRICS_TOKEN');
  });

  it('rejects an unknown crash point', () => {
    for (const point of ['after-claim', 'before-commit:12'])
      expect(() => loadConfig({ DARKROOM_CRASH_AT: point })).not.toThrow();
    for (const point of ['after-lunch', 'after-claim:0', 'after-claim:', ':1'])
      expect(() => loadConfig({ DARKROOM_CRASH_AT: point })).toThrow('DARKROOM_CRASH_AT');
  });

  it.each([
    ['https://pictures.example/', 'https://pictures.example'],
    ['HTTPS://Pictures.Example:8443/Sub//', 'https://pictures.example:8443/Sub'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['https://例え.jp/ü', 'https://xn--r8jz45g.jp/%C3%BC'],
  ])('takes PUBLIC_URL %s in its normal form', (given, expected) => {
    expect(loadConfig({ PUBLIC_URL: given }).publicUrl).toBe(expected);
  });

  it.each([
    'https://x.com?a=1',
    'https://u:p@x.com',
    'https:x.com',
    'https://x.com/a b',
    'https://x.com#h',
    'https://x.com\\a',
  ])('refuses PUBLIC_URL %s', (given) =>
    expect(() => loadConfig({ PUBLIC_URL: given })).toThrow('PUBLIC_URL must be an http:// or https:// URL'),
  );

  it.each(['redis://redis:6379/x', 'redis:redis', 'redis:'])('refuses REDIS_URL %s', (given) => {
    expect(() => loadConfig({ REDIS_URL: given })).toThrow('REDIS_URL must be');
  });
});

describe(databaseUrlOf.name, () => {
  it('names the setting that is missing', () => {
    expect(() => databaseUrlOf(loadConfig({}))).toThrow(ConfigError);
    expect(() => databaseUrlOf(loadConfig({}))).toThrow('DATABASE_URL is needed');
  });
});
