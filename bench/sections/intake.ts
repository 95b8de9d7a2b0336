import { jsonOf } from '../child';
import type { Section } from '../section';
import { figure } from '../section';

/** Connections and keys of what is measured. */
const scenarios = { 'POST 1x1': '1 connection', 'POST 20x1': '20 connections', 'GET 20x1': '20 connections' };
const seconds = 1;

/** A line of `bench/intake`. */
interface Line {
  method: 'GET' | 'POST';
  connections: number;
  keys: number;
  ratios: number[];
}

export const intake: Section = {
  name: 'intake',
  title: 'Intake',
  about:
    'Requests that the api answers a second, divided by those of Node’s own `http` with one `pg` statement per request, on the same PostgreSQL. ' +
    '`npm run bench:intake` measures more cases.',
  rounds: 3,
  async measure({ rounds }) {
    const args = ['--rounds', String(rounds), '--seconds', String(seconds), '--only', Object.keys(scenarios).join(',')];
    const { scenarios: lines } = await jsonOf<{ scenarios: Line[] }>('intake/main.js', args);
    const nameOf = ({ method, connections, keys }: Line) =>
      `${method}, ${scenarios[`${method} ${connections}x${keys}` as keyof typeof scenarios]}: the api / bare`;
    return { figures: lines.map((line) => figure(nameOf(line), line.ratios)) };
  },
};
