import { FileImageStorage } from '@app/storage';
import { runErase } from '../../apps/cli/src/erase-command';
import { startTestApi } from '../support/api';
import { drawTask } from '../support/factories';
import { ofSuite } from '../support/of-suite';

describe('npm run erase', () => {
  const api = ofSuite(() => startTestApi({ AUDIT_DAYS: '30' }));
  const key = ofSuite(() => api.createKey());
  afterEach(() => jest.restoreAllMocks());

  async function draw(user: string): Promise<void> {
    const body = { prompt: 'a star', user };
    const { body: made } = await api.request<{ id: string }>('POST', '/v1/sd/text-to-image', { key, body });
    await drawTask(api, made.id);
  }
  async function erase(...args: string[]) {
    const [stdout, stderr]: string[][] = [[], []];
    const code = await runErase(args, {
      env: { DATABASE_URL: api.config.databaseUrl, DATA_DIR: api.config.dataDir, ...api.backEnds.env },
      stdout: { write: (text: string) => stdout.push(text) },
      stderr: { write: (text: string) => stderr.push(text) },
    });
    return { code, printed: stdout.join(''), said: stderr.join('') };
  }
  const nothing = {
    ...{ generations: 0, prompts: 0, finetunes: 0, styles: 0, pictures: 0, uploads: 0, deliveries: 0 },
    ...{ usage_rows: 0, audit_entries: 0, files_left: [] },
  };

  it('prints how much it has erased, a line for each kind', async () => {
    await draw('ann');
    const { code, printed, said } = await erase('--user', 'ann');
    expect([code, said]).toEqual([0, '']);
    const lines = printed.trimEnd().split('\n');
    expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
      ['user', 'ann'],
      ['account', 'all'],
      ['at', expect.stringMatching(/^20[^ ]+Z$/)],
      ...[
        ['generations', '1'],
        ['prompts', '0'],
        ['finetunes', '0'],
        ['styles', '0'],
        ['pictures', '1'],
      ],
      ...[
        ['uploads', '0'],
        ['deliveries', '0'],
        ['usage rows', '1'],
        ['audit entries', '1'],
      ],
    ]);
  });

  it('prints the same as JSON, with whose it was', async () => {
    const { code, printed } = await erase('--user', 'nobody', '--account', key.id, '--json');
    expect([code, JSON.parse(printed)]).toEqual([
      0,
      { user: 'nobody', account: key.id, at: expect.any(String) as string, ...nothing },
    ]);
  });

  it('ends with 1 where files are left, and names them in JSON', async () => {
    for (const user of ['bob', 'eve']) await draw(user);
    jest.spyOn(FileImageStorage.prototype, 'removeAll').mockRejectedValue(new Error('EBUSY'));
    const sentence = /^1 files could not be removed; the service removes them within two hours\.\n$/;
    const plain = await erase('--user', 'bob');
    expect([plain.code, plain.said]).toEqual([1, expect.stringMatching(sentence)]);
    expect(plain.printed).toMatch(/^generations +1$/m);
    const { code, printed, said } = await erase('--user', 'eve', '--json');
    expect([code, said]).toEqual([1, expect.stringMatching(sentence)]);
    const { files_left: left } = JSON.parse(printed) as { files_left: string[] };
    expect(left).toEqual([expect.stringMatching(/^\w/)]);
  });

  it('erases nothing where the account is not there', async () => {
    await draw('dan');
    const { code, printed, said } = await erase('--user', 'dan', '--account', 'none');
    expect([code, printed]).toEqual([1, '']);
    expect(said).toBe('There is no account "none"; "npm run keys -- list" shows them.\n');
    expect((await erase('--user', 'dan')).printed).toMatch(/^generations +1$/m);
  });
});
