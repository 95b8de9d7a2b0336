import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { databaseUrlOf } from '@app/config';
import { JsonLogger } from '@app/observability';
import { misconfiguredExitCode } from '@app/process';
import { startTestApi } from '../support/api';
import { writePair } from '../support/certificates';
import { ofSuite } from '../support/of-suite';
import { smallPicture } from '../support/small-picture';

describe('An api whose CREDENTIALS_OWN cannot be used', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'darkroom-own-')), 'own.pem');
  const api = ofSuite(async () => {
    const { certificate } = await writePair(mkdtempSync(join(tmpdir(), 'darkroom-own-')), 'former');
    writeFileSync(file, readFileSync(certificate));
    return startTestApi({ CREDENTIALS_OWN: file });
  });

  it('does not start, and says why', async () => {
    const env = {
      ...{ ...process.env, DATABASE_URL: databaseUrlOf(api.config), PORT: '0' },
      CREDENTIALS_OWN: `${file}.missing`,
    };
    const started = promisify(execFile)(process.execPath, [join('dist', 'apps', 'api', 'src', 'main.js')], { env });
    const failure = await started.catch((error: { code: number; stderr: string }) => error);
    expect(failure).toMatchObject({
      code: misconfiguredExitCode,
      stderr: 'The api could not start: The file of CREDENTIALS_OWN cannot be read: ENOENT.\n',
    });
  });

  it('tells its operator when it breaks later, and callers only that nothing can be read', async () => {
    const key = await api.createKey();
    const verify = async () => {
      const { status, body } = await api.request('POST', '/v1/verify', { key, raw: await smallPicture() });
      return [status, body.detail];
    };
    expect(await verify()).toEqual([200, undefined]);
    writeFileSync(file, '');
    const warn = jest.spyOn(api.app.get(JsonLogger), 'warnSparingly');
    expect(await verify()).toEqual([503, 'Pictures cannot be read at the moment. Try again shortly.']);
    expect(warn.mock.calls).toEqual([
      [expect.any(String), { reason: 'The file of CREDENTIALS_OWN has no certificates in PEM.' }],
    ]);
  });
});
