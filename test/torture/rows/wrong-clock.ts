import { until } from '../../support/until';
import { audit, comeToRest } from '../audit';
import type { Row } from '../row';
import type { ServiceProcess } from '../../support/service-process';
import { preload } from '../site';

const offMs = 60_000;
/** Longest time of a claim; in the short form, on a busy machine. */
const claimMs = { long: 1_000, short: 5_000 };
const halted = /nothing is claimed/;

/**
 * Next to a correct worker there are two whose clocks are wrong by a minute, one fast and one slow, and two whose
 * clocks jump by as much while they draw.
 */
export const wrongClock: Row = {
  name: 'wrong-clock',
  title: 'clock +-60 s',
  sharedSite: 'sound workers',
  async run(site, size) {
    const jobs = size === 'long' ? 100 : 6;
    const api = await site.anyApi();
    const caller = await site.newCaller(api);
    await site.anyWorkers(1);
    const nodeOptions = preload('clock.cjs');
    const both = (variable: string, health: 'live' | 'ready'): Promise<ServiceProcess[]> =>
      Promise.all(
        [offMs, -offMs].map((ms) => site.startWorker({ env: { [variable]: String(ms) }, nodeOptions, health })),
      );
    const wrong = await both('TORTURE_CLOCK_MS', 'live');
    const jumping = await both('TORTURE_CLOCK_JUMP_MS', 'ready');
    site.finally(() => Promise.all([...wrong, ...jumping].map((worker) => worker.end('SIGKILL'))));
    const picture = { webhook: site.receiver.url, steps: site.lastingSteps };
    await caller.createMany(jobs / 2, picture);
    for (const worker of jumping) worker.signal('SIGUSR2');
    await caller.createMany(jobs / 2, picture);
    const problems = await comeToRest(site);
    for (const worker of [...wrong, ...jumping])
      await until(async () => halted.test(worker.output), 'a worker says that its clock is wrong').catch(
        ({ message }: Error) => problems.push(message),
      );
    for (const { output } of wrong)
      if (/"msg":"drawing"/.test(output)) problems.push('a worker draws though its clock is wrong');
    // It claims no more after it has logged the skew, although it draws what it was just claiming.
    for (const { lines } of jumping)
      if (drawsAfterHalt(lines, claimMs[size])) problems.push('a worker draws after its clock has jumped');
    const [{ stolen }] = await site.query<{ stolen: number }>(
      'SELECT count(*)::int AS stolen FROM tasks WHERE attempt <> 1',
    );
    if (stolen > 0) problems.push(`${stolen} pictures were taken from the worker that drew them`);
    return audit(site, { problems, notes: { 'clocks wrong by s': `${offMs / 1000}, -${offMs / 1000}` } });
  },
};

function drawsAfterHalt(lines: ServiceProcess['lines'], withinMs: number): boolean {
  const since = lines.slice(lines.findIndex(({ msg }) => halted.test(msg)));
  const at = ({ time }: (typeof since)[number]): number => Date.parse(String(time));
  return since.some((line) => line.msg === 'drawing' && at(line) > at(since[0]) + withinMs);
}
