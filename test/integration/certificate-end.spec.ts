import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PictureSigner } from '@app/credentials';
import { PictureCredentials } from '../../apps/inference/src/pictures/picture-credentials';
import { writePair } from '../support/certificates';

const dayMs = 86_400_000;

describe('The certificate of a worker', () => {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-end-'));
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
  afterEach(() => jest.useRealTimers().restoreAllMocks());

  async function workerWith(daysLeft: number, isRequired = true) {
    const pair = await writePair(folder, `${daysLeft}`, { days: [-1, daysLeft] });
    const logger = { log: jest.fn(), warn: jest.fn() };
    const credentials = new PictureCredentials({ credentials: { ...pair, prompt: false, isRequired } }, logger);
    const sign = jest.spyOn(PictureSigner.prototype, 'check').mockResolvedValue();
    const checkIn = async (ms: number): Promise<void> => {
      jest.advanceTimersByTime(ms);
      await credentials.check();
    };
    return { credentials, checkIn, sign, warn: logger.warn };
  }

  it('is warned of once a day when it ends in less than 30 days, and not before', async () => {
    const { checkIn, warn } = await workerWith(31.5);
    await checkIn(0);
    await checkIn(dayMs);
    expect(warn).not.toHaveBeenCalled();
    await checkIn(dayMs);
    await checkIn(dayMs / 2);
    const line = ['the certificate that signs pictures ends soon', { end: expect.stringMatching(/^20.*Z$/) as string }];
    expect(warn.mock.calls).toEqual([line]);
    await checkIn(dayMs);
    expect(warn.mock.calls).toEqual([line, line]);
  });

  it('is looked at by a worker that draws, also where pictures may be stored without', async () => {
    const { credentials, sign } = await workerWith(2, false);
    sign.mockRejectedValue(new Error('It has expired.'));
    expect(await credentials.mayDraw()).toBe(true);
    expect(sign).toHaveBeenCalledTimes(1);
  });

  it('is not taken for good beyond its end', async () => {
    const { checkIn, sign } = await workerWith(1);
    await checkIn(dayMs - 10_000);
    await checkIn(5_000);
    expect(sign).toHaveBeenCalledTimes(1);
    sign.mockRejectedValue(new Error('It has expired.'));
    await expect(checkIn(10_000)).rejects.toThrow('It has expired.');
  });
});
