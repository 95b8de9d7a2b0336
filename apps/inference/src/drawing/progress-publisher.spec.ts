import type { JsonLogger } from '@app/observability';
import type { DataSource } from 'typeorm';
import { ProgressPublisher } from './progress-publisher';

const preview = { data: new Uint8Array(8 * 8 * 3), width: 8, height: 8 };

describe(ProgressPublisher.name, () => {
  const published = (publish: (publisher: ProgressPublisher) => void): Promise<string> =>
    new Promise((resolve) => {
      const query = (_: string, [, payload]: [string, string]): Promise<void> => {
        const { preview: jpeg } = JSON.parse(payload) as { preview: string };
        resolve(Buffer.from(jpeg, 'base64').toString('latin1'));
        return Promise.resolve();
      };
      publish(new ProgressPublisher({ query } as unknown as DataSource, {} as JsonLogger));
    });
  const drawing = (inputs: object | null) => (publisher: ProgressPublisher) =>
    publisher.of({ id: 'a', attempt: 1, steps: 1, inputs })({ step: 1, total: 1, preview });

  it.each([
    ['a drawing', 'trainedAlgorithmicMedia', drawing(null)],
    ['a drawing of references', 'trainedAlgorithmicMedia', drawing({ references: [{}] })],
    ['an edit', 'compositeWithTrainedAlgorithmicMedia', drawing({ image: {} })],
    [
      'a training',
      'trainedAlgorithmicMedia',
      (publisher: ProgressPublisher) =>
        publisher.ofTraining({ id: 'a', attempt: 1 })({ round: 0, step: 1, steps: 1, loss: 0, preview }),
    ],
  ])('marks the previews of %s as %s in XMP', async (_, type, publish) => {
    expect(await published(publish)).toContain(
      `DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/${type}"`,
    );
  });
});
