import { rm } from 'node:fs/promises';
import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { GenerationBody } from '../caller';
import type { Row } from '../row';
import { mountSmallDisk } from '../small-disk';

/** The pictures' file system is full for a while. */
export const diskFull: Row = {
  name: 'disk-full',
  title: 'image disk full',
  async run(site, size) {
    const disk = await mountSmallDisk(site);
    if ('skipped' in disk) return audit(site, disk);
    const { ballast, fill } = disk;
    const problems: string[] = [];
    const api = await site.startApi();
    await site.startWorker();
    const caller = await site.newCaller(api);

    await fill();
    const ids = await caller.createMany(2, { webhook: site.receiver.url });
    await until(
      async () => (await site.query(`SELECT FROM tasks WHERE status = 'queued' AND attempt >= 1`)).length > 0,
      'a picture could not be stored',
    );
    const [shown] = await Promise.all(ids.map((id) => caller.request('GET', `/v1/sd/text-to-image/${id}`)));
    if ((JSON.parse(shown.text) as GenerationBody).images.length > 0) problems.push('a picture is shown without room');
    await rm(ballast);
    problems.push(...(await comeToRest(site)));
    for (const id of ids) {
      const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
      const { status, images: urls } = JSON.parse(text) as GenerationBody;
      if (status !== 'succeeded') problems.push(`with room again it ${status}`);
      for (const url of urls) {
        const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
        if (!bytes.subarray(-8, -4).equals(Buffer.from('IEND'))) problems.push(`${url} is half a picture`);
      }
    }

    if (size === 'long') {
      await fill();
      const [id] = await caller.createMany(1, { webhook: site.receiver.url });
      problems.push(...(await comeToRest(site)));
      const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
      const { status, error } = JSON.parse(text) as GenerationBody;
      if (status !== 'failed' || !/storage is full/.test(error ?? ''))
        problems.push(`without room: ${status}, ${error}`);
    }
    await rm(ballast, { force: true });
    return audit(site, { problems, mayFail: /storage is full/ });
  },
};
