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

    // Room enough to begin a picture, and not for its file.
    await fill(80 * 1024);
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

    // Full again before anything is begun: nothing is drawn in vain, however long it lasts.
    await fill();
    const waiting = await caller.createMany(size === 'long' ? 12 : 2, { webhook: site.receiver.url });
    await until(
      async () => (await fetch(`${api.url}/health/ready`)).status === 503,
      'the service says that it has no room',
    );
    const begun = await site.query(`SELECT FROM tasks WHERE id = ANY($1) AND attempt > 0`, [waiting]);
    if (begun.length > 0) problems.push(`${begun.length} pictures are drawn without room for them`);
    await rm(ballast);
    problems.push(...(await comeToRest(site)));
    for (const id of waiting) {
      const { text } = await caller.request('GET', `/v1/sd/text-to-image/${id}`);
      const { status } = JSON.parse(text) as GenerationBody;
      if (status !== 'succeeded') problems.push(`after the second time it ${status}`);
    }
    const counted = await site.query('SELECT FROM tasks WHERE failures > 0');
    if (counted.length > 0) problems.push('a full disk counts as a failure of a picture');
    return audit(site, { problems });
  },
};
