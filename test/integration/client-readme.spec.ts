import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../../packages/client/src';
import { FakeService } from '../support/fake-service';

const readme = readFileSync(join(__dirname, '..', '..', 'packages', 'client', 'README.md'), 'utf8');

/** The table's methods: name, names of the parameters, method and path of the first request. */
const rows = [...readme.matchAll(/^\| `([\w.]+)\((.*?)\)`\s*\| `([A-Z]+) (\S+)`\s*\| \w.*\|$/gm)].map(
  ([, name, parameters, method, path]) => [name, parameters, method, path] as const,
);

type Method = (...args: unknown[]) => unknown;

/** The methods of a client by their name, such as `generations.create`. */
function methodsOf(client: object, prefix = ''): [string, Method][] {
  return Object.entries(client).flatMap(([name, value]: [string, Method | object]) =>
    typeof value === 'function' ? [[`${prefix}${name}`, value as Method]] : methodsOf(value, `${name}.`),
  );
}

/** What a caller could give for a parameter of the table. */
function argumentOf(parameter: string): unknown {
  if (/^(?:id|\w+Id)$/.test(parameter)) return parameter;
  if (parameter === 'url') return 'https://darkroom.example/images/name';
  return parameter === 'bytes' ? new Uint8Array(8) : {};
}

describe("The table of methods in the client's README", () => {
  const service = new FakeService([new Error('no answer is needed')]);
  const client = createClient({
    baseUrl: 'https://darkroom.example',
    apiKey: 'dr_key',
    retries: 0,
    fetch: service.fetch,
  });
  const methods = methodsOf(client);

  it('has each method, and no others', () => {
    expect(rows.map(([name]) => name)).toEqual(methods.map(([name]) => name));
  });

  it.each(rows)('has the request of %s(%s)', async (name, parameters, method, path) => {
    const call = methods.find(([each]) => each === name)![1];
    const sent = service.sent.length;
    const made = call(...parameters.split(', ').filter(Boolean).map(argumentOf)) as Partial<AsyncIterator<unknown>>;
    await expect(Promise.resolve(made.next ? made.next() : made)).rejects.toMatchObject({ name: 'DarkroomError' });
    const [request] = service.sent.slice(sent);
    expect(`${request.method} ${new URL(request.url).pathname}`).toBe(`${method} ${path.replace(/[<>]/g, '')}`);
  });
});
