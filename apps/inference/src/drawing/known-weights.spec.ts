import { weightsLabel } from '@app/tasks';
import { KnownWeights } from './known-weights';

describe(KnownWeights.name, () => {
  it('names the models and Fine-Tunes that are drawn with given keys, as they were drawn last', () => {
    const weights = new KnownWeights();
    const shapes = { model: 'shapes', finetuneId: null, weightsScale: null };
    const standIn = { ...shapes, model: 'sd1.5' };
    const [robot, weaker] = [1, 0.5].map((weightsScale) => ({ ...shapes, finetuneId: 'robot', weightsScale }));
    weights.remember(standIn, 'shapes@1');
    weights.remember(shapes, 'shapes@1');
    weights.remember(robot, 'shapes@1+lora');
    weights.remember(weaker, 'shapes@1+weaker');
    expect(weights.drawnWith(new Set(['shapes@1']))).toEqual([standIn, shapes].map(weightsLabel));
    weights.remember(shapes, 'shapes@2');
    expect(weights.drawnWith(new Set(['shapes@1', 'shapes@1+lora']))).toEqual([standIn, robot].map(weightsLabel));
  });
});
