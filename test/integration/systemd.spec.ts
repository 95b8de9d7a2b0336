import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadConfig } from '@app/config';
import { misconfiguredExitCode } from '@app/process';

const root = resolve(__dirname, '..', '..');
const folder = join(root, 'docker', 'systemd');
const units = readdirSync(folder);
const services = units.filter((name) => name.endsWith('.service'));
const systemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/** Settings of a unit, by section and name. */
function settingsOf(unit: string): Map<string, string> {
  const settings = new Map<string, string>();
  let section = '';
  for (const line of readFileSync(join(folder, unit), 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const header = /^\[(\w+)\]$/.exec(line)?.[1];
    const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (header) section = header;
    else if (name) settings.set(`${section}.${name}`, value);
    else throw new Error(`${unit}: "${line}" is no setting.`);
  }
  return settings;
}

describe.each(services)('docker/systemd/%s', (unit) => {
  const settings = settingsOf(unit);
  const environment = Object.fromEntries(
    settings
      .get('Service.Environment')!
      .split(' ')
      .map((pair) => pair.split('=')),
  ) as Record<string, string>;

  it('runs a program of the service, with settings that it knows', () => {
    const [main] = /dist\/\S+\.js/.exec(settings.get('Service.ExecStart')!)!;
    expect([main, existsSync(join(root, main.replace(/^dist\/(.*)\.js$/, '$1.ts')))]).toEqual([main, true]);
    expect(settings.get('Service.WorkingDirectory')).toBe('/opt/darkroom');
    const { dataDir, modelsDir } = loadConfig(environment);
    const { NODE_ENV, ...ours } = environment;
    expect([NODE_ENV, ours]).toEqual(['production', { DATA_DIR: dataDir, MODELS_DIR: modelsDir }]);
  });

  it('writes only its own state, as a user without rights', () => {
    expect(settings.get('Service.User')).toBe('darkroom');
    const expected = { ProtectSystem: 'strict', NoNewPrivileges: 'true', UMask: '0077', StateDirectory: 'darkroom' };
    for (const [name, value] of Object.entries(expected))
      expect([name, settings.get(`Service.${name}`)]).toEqual([name, value]);
    for (const path of Object.values(environment).slice(1)) expect(path).toMatch(/^\/var\/lib\/darkroom\//);
  });

  it('is given more time to end than what is being drawn may take, if it stays, and is not started again with wrong settings', () => {
    if (settings.get('Service.Type') === 'oneshot') expect(settings.has('Service.Restart')).toBe(false);
    else {
      expect(Number(settings.get('Service.TimeoutStopSec'))).toBeGreaterThan(30);
      expect(settings.get('Service.KillMode')).toBe('mixed');
      expect(settings.get('Service.RestartPreventExitStatus')).toBe(String(misconfiguredExitCode));
      expect(settings.get('Install.WantedBy')).toBe('multi-user.target');
    }
  });
});

describe('docker/systemd', () => {
  const itWithSystemd = systemd ? it : it.skip;

  it('names only units that are there', () => {
    expect(services.length).toBe(5);
    for (const unit of units)
      for (const [, name] of readFileSync(join(folder, unit), 'utf8').matchAll(
        /\b(darkroom[\w-]*\.(?:service|timer))\b/g,
      ))
        expect(units).toContain(name);
    expect(units.filter((name) => name.endsWith('.timer'))).toEqual(['darkroom-backup.timer']);
  });

  itWithSystemd('is accepted by systemd', () => {
    const paths = units.map((name) => join(folder, name));
    const { stdout, stderr, status } = spawnSync('systemd-analyze', ['verify', ...paths], { encoding: 'utf8' });
    expect([status, stdout + stderr]).toEqual([0, '']);
  });
});
