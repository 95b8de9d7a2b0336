import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort, isListening } from './free-port';
import { until } from './until';

const folder = resolve(__dirname, '..', '..', 'docker', 'proxy');
const findProgram = (...paths: string[]): string | undefined =>
  paths.find((path) => spawnSync(path, ['version']).error === undefined);

/** The installed proxies. */
export const proxies = { nginx: findProgram('nginx', '/usr/sbin/nginx'), caddy: findProgram('caddy') };

/** Runs a proxy with our example before an api, on a free port, without TLS. */
export async function startProxy(
  name: keyof typeof proxies,
  apiUrl: string,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const place = mkdtempSync(join(tmpdir(), `darkroom-${name}-`));
  const port = await freePort();
  const { host } = new URL(apiUrl);
  const args = name === 'nginx' ? nginx(place, port, host) : caddy(place, port, host);
  const child = spawn(proxies[name]!, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, HOME: place },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, 'exit');
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended: ${said}`);
    return isListening(port);
  }, `${name} listens`);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      // Caddy would wait for open streams.
      child.kill('SIGKILL');
      await ended;
      rmSync(place, { recursive: true, force: true });
    },
  };
}

/** @throws if the example lacks what is replaced */
function replaced(file: string, ...replacements: (readonly [RegExp, string])[]): string {
  return replacements.reduce(
    (text, [pattern, by]) => {
      if (!pattern.test(text)) throw new Error(`${file} has no ${pattern.source}.`);
      return text.replace(pattern, by);
    },
    readFileSync(join(folder, file), 'utf8'),
  );
}

function nginx(place: string, port: number, host: string): string[] {
  const site = replaced(
    'nginx.conf',
    [/server 127\.0\.0\.1:3000;/, `server ${host};`],
    // The server that redirects to TLS.
    [/server \{\n {2}listen 80;[^}]*\}\n/, ''],
    [/listen 443 ssl http2;/, `listen 127.0.0.1:${port};`],
    [/\n {2}listen \[::\]:443 .*/, ''],
    [/\n {2}ssl_certificate .*/, ''],
    [/\n {2}ssl_certificate_key .*/, ''],
  );
  writeFileSync(join(place, 'site.conf'), site);
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => {
    mkdirSync(join(place, kind));
    return `${kind}_temp_path ${join(place, kind)};`;
  });
  writeFileSync(
    join(place, 'nginx.conf'),
    `daemon off; master_process off; pid ${join(place, 'pid')}; error_log stderr warn; events {}
     http { access_log off; ${paths.join(' ')} include ${join(place, 'site.conf')}; }`,
  );
  return ['-p', place, '-e', 'stderr', '-c', join(place, 'nginx.conf')];
}

function caddy(place: string, port: number, host: string): string[] {
  const site = replaced(
    'Caddyfile',
    [/^pictures\.example\.com \{/m, `http://127.0.0.1:${port} {`],
    [/127\.0\.0\.1:3000/, host],
  );
  writeFileSync(join(place, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  return ['run', '--config', join(place, 'Caddyfile'), '--adapter', 'caddyfile'];
}
