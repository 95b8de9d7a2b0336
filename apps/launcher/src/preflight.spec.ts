import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { misconfiguredExitCode } from '@app/process';
import { modelToName, requireModel, requirePorts } from './preflight';

describe(requireModel.name, () => {
  let models: string;
  beforeEach(async () => (models = await mkdtemp(join(tmpdir(), 'darkroom-models-'))));
  afterEach(() => rm(models, { recursive: true }));

  it('takes a model without the optional model_index.json for one', async () => {
    await mkdir(join(models, 'sd1.5', 'vae'), { recursive: true });
    expect(requireModel(models)).toEqual(['sd1.5']);
  });

  it('takes a checkpoint for a model', async () => {
    await mkdir(join(models, 'other'));
    await writeFile(join(models, 'other', 'model.safetensors'), '');
    expect(() => requireModel(models)).not.toThrow();
  });

  it('refuses a folder in which only upscalers are', async () => {
    await mkdir(join(models, 'upscalers'));
    expect(() => requireModel(models)).toThrow(`There is no model in ${models}`);
  });
});

describe(modelToName.name, () => {
  it.each([
    [['sd1.5'], false, undefined],
    [['shapes'], true, undefined],
    [['shapes'], false, 'shapes'],
    [['klein', 'z-image'], true, 'klein'],
  ])('of %j with a stand-in allowed: %s, is %s', (models, modelFallback, name) =>
    expect(modelToName(models, modelFallback)).toBe(name),
  );
});

describe(requirePorts.name, () => {
  let other: Server;
  let taken: number;
  beforeEach(async () => {
    other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    taken = (other.address() as AddressInfo).port;
  });
  afterEach(() => new Promise((resolve) => other.close(resolve)));

  const free = { port: 0, inferenceHealthPort: 0, host: '127.0.0.1' };

  it('finds free ports where any will do', async () => {
    const { port, healthPort } = await requirePorts(free, 0);
    expect([port > 0, healthPort > 0]).toEqual([true, true]);
  });

  it.each([
    ['PORT', 'port'],
    ['INFERENCE_HEALTH_PORT', 'inferenceHealthPort'],
  ])('names %s where another program uses that port', (variable, field) =>
    expect(requirePorts({ ...free, [field]: taken }, 0)).rejects.toMatchObject({
      message: `${variable} is ${taken}, and another program uses that port of 127.0.0.1: end that, or set ${variable} to another port.`,
      exitCode: 1,
    }),
  );

  it('may be tried again where the address is not there yet', () =>
    expect(requirePorts({ ...free, host: '192.0.2.1' }, 0)).rejects.toMatchObject({
      message: 'HOST is "192.0.2.1", which is no address of this machine.',
      exitCode: 1,
    }));

  it('takes no port for both', () =>
    expect(requirePorts({ ...free, port: taken, inferenceHealthPort: taken }, 0)).rejects.toMatchObject({
      message: `PORT and INFERENCE_HEALTH_PORT are both ${taken}: set one of them to another port.`,
      exitCode: misconfiguredExitCode,
    }));

  it('waits for a port that is still in use by an earlier run', async () => {
    const port = requirePorts({ ...free, port: taken }, 10_000);
    other.close();
    await expect(port).resolves.toMatchObject({ port: taken });
  });
});
