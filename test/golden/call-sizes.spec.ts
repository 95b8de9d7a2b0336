import { join } from 'node:path';
import { readModelFolder } from '../../libs/diffusion/src/model/model-folder';
import { type GraphSession, ModelSession } from '../../libs/diffusion/src/model/model-session';
import { Unet } from '../../libs/diffusion/src/unet/unet';
import { cpu } from '../support/cpu';

const [edge, tokens] = [16, 77];

describe('a U-Net that is called in powers of two', () => {
  let session: ModelSession;
  let channels: number;
  let width: number;
  const rowsOfCalls: number[] = [];

  beforeAll(async () => {
    const folder = await readModelFolder(join(__dirname, '../../models/shapes'), 'cpu');
    session = await ModelSession.open(folder.unet, cpu);
    channels = folder.configs.unet.in_channels as number;
    width = folder.configs.unet.cross_attention_dim as number;
  });
  beforeEach(() => rowsOfCalls.splice(0));
  afterAll(() => session.release());

  const counted = (): GraphSession => ({
    file: session.file,
    inputs: session.inputs,
    outputs: session.outputs,
    spent: session.spent,
    run: (feeds, output) => {
      rowsOfCalls.push(feeds.sample.dims[0]);
      return session.run(feeds, output);
    },
    release: () => session.release(),
  });

  async function predict(unet: Unet, rows: number): Promise<Float32Array> {
    const batch = unet.createBatch(rows, [channels, edge, edge], tokens, width);
    const [size, embedded] = [channels * edge * edge, tokens * width];
    for (let row = 0; row < rows; row++) {
      batch.sample.values.fill(Math.sin(row + 1), row * size, (row + 1) * size);
      batch.timestep.values[row] = 100 * (row + 1);
      batch.promptEmbeds.values.fill(Math.cos(row), row * embedded, (row + 1) * embedded);
    }
    for (const input of [batch.sample, batch.timestep, batch.promptEmbeds]) input.commit();
    return (await unet.predict(batch, rows)).slice(0, rows * size);
  }

  it('adds rows up to the next one, which change nothing in the others', async () => {
    const exact = new Unet(counted());
    const padded = new Unet(counted(), { inPowersOfTwo: true });
    for (const rows of [1, 3, 6]) expect(await predict(padded, rows)).toEqual(await predict(exact, rows));
    expect(rowsOfCalls).toEqual([1, 1, 4, 3, 8, 6]);
  });
});
