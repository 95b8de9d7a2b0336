import { type ModerationServer, startModeration } from '../support/moderation-server';
import { ModerationDownError, ModerationHook } from '@app/moderation';

describe(ModerationHook.name, () => {
  let server: ModerationServer;
  beforeEach(async () => {
    server = await startModeration();
  });
  afterEach(() => server.close());

  const hook = (onError: 'allow' | 'refuse', timeoutMs = 5_000) =>
    new ModerationHook({ url: server.url, onError, timeoutMs });

  it('tells of each of many texts what is wrong with it, and asks about few at a time', async () => {
    const texts = Array.from({ length: 70 }, (_, i) => (i === 40 ? 'flagged' : `rose ${i}`));
    const flagged = await hook('refuse').flaggedTexts(texts);
    expect(flagged.map((names, i) => names && [i, names]).filter(Boolean)).toEqual([[40, ['violence']]]);
    expect([server.asked.inputs, server.asked.keys.length]).toEqual([texts, 3]);
  });

  it('asks about a picture', async () => {
    server.behaviour.flagsPicture = (url) => url.endsWith('bad');
    expect(await hook('refuse').flaggedPicture('data:image/jpeg;base64,bad')).toEqual(['violence']);
    expect(await hook('refuse').flaggedPicture('data:image/jpeg;base64,good')).toBeUndefined();
  });

  it.each<[unknown, string[]]>([
    [{ violence: true, 'self-harm/intent': true, sexual: false }, ['violence', 'self-harm/intent']],
    [{ 'a\0b': true, ['x'.repeat(101)]: true, hate: 'yes', ok: true }, ['ok']],
    ['abc', []],
    [['violence'], []],
    [null, []],
  ])('tells names alone, of categories %j', async (categories, names) => {
    server.behaviour.categories = categories;
    expect(await hook('refuse').flaggedTexts(['flagged'])).toEqual([names]);
  });

  it('waits once alone where it does not answer', async () => {
    server.behaviour.fault = 'silent';
    const texts = Array.from({ length: 70 }, () => 'flagged');
    expect(await hook('allow', 50).flaggedTexts(texts)).toEqual(texts.map(() => undefined));
    expect(server.asked.keys).toHaveLength(1);
  });

  it.each(['silent', 'broken'] as const)('refuses or allows, as is wanted, where it is %s', async (fault) => {
    server.behaviour.fault = fault;
    await expect(hook('refuse', 50).flaggedTexts(['flagged'])).rejects.toThrow(ModerationDownError);
    expect(await hook('allow', 50).flaggedTexts(['flagged', 'rose'])).toEqual([undefined, undefined]);
    await expect(hook('refuse', 50).flaggedPicture('data:,')).rejects.toThrow(ModerationDownError);
  });

  it('says that it cannot be asked without its address or its key', async () => {
    const withPassword = { url: server.url.replace('//', '//somebody:secret@') };
    for (const settings of [withPassword, { url: server.url, key: 'secret\u0100' }, { url: 'http://127.0.0.1:1' }]) {
      const asked = new ModerationHook({ ...settings, onError: 'refuse' }).flaggedTexts(['rose']);
      await expect(asked).rejects.toThrow(/^it cannot be reached, or it redirects$/);
    }
  });
});
