import { until } from '../../support/until';
import { type S3Trouble, startS3 } from '../../support/s3-server';
import { audit, comeToRest } from '../audit';
import type { GenerationBody } from '../caller';
import type { Row } from '../row';

const troubles: readonly S3Trouble[] = ['unavailable', 'deny', 'reset', 'silent'];

/**
 * The S3 store answers 503, 403, or nothing, or drops the connection, while pictures are to be stored; then it
 * recovers.
 */
export const storeFaults: Row = {
  name: 'store-faults',
  title: 'S3 down, slow, 403',
  async run(site, size) {
    const s3 = await startS3();
    site.finally(() => s3.close());
    Object.assign(site.env, s3.env);
    const api = await site.startApi();
    await site.startWorker();
    const caller = await site.newCaller(api);
    const problems: string[] = [];
    const pictures = async (id: string): Promise<string[]> => {
      const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
      return (JSON.parse(text) as GenerationBody).images;
    };
    const [first] = await caller.createMany(1, { webhook: site.receiver.url });
    problems.push(...(await comeToRest(site)));
    const [picture] = await pictures(first);
    let unavailable = 0;

    for (const kind of size === 'long' ? [...troubles, ...troubles, ...troubles] : troubles) {
      s3.trouble(kind);
      const [id] = await caller.createMany(1, { webhook: site.receiver.url });
      const met = s3.requests.length;
      await until(async () => s3.requests.length > met, `the store is asked while it is ${kind}`, 120_000);
      if ((await pictures(id)).length > 0) problems.push(`${kind}: a picture is shown that is not stored`);
      if (kind !== 'silent') {
        const reply = await fetch(picture);
        if (reply.status === 503 && reply.headers.has('retry-after')) unavailable++;
        else problems.push(`${kind}: a picture is answered with ${reply.status}`);
      }
      s3.trouble(undefined);
      problems.push(...(await comeToRest(site)));
      const { status } = await fetch((await pictures(id))[0] ?? picture);
      if (status !== 200) problems.push(`${kind}: afterwards a picture is answered with ${status}`);
    }
    return audit(site, { problems, notes: { 'pictures asked for in vain': unavailable } });
  },
};
