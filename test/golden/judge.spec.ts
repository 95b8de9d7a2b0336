import { judge } from '../../bench/judge/judge';
import { render as renderAt } from '../../bench/judge/render';
import type { Scene } from '../../bench/judge/scenes';
import { randomFrom, sampleScene } from '../../bench/judge/scenes';

/** Pictures of half the width and height that models draw have all that is judged. */
const render = (scene: Scene) => renderAt(scene, 0.5);

const star: Scene = {
  caption: 'a green star on a striped orange background',
  format: 'square',
  ground: 'orange',
  kind: 'striped',
  mode: 'one',
  items: [{ shape: 'star', color: 'green', finish: 'flat', x: 0, y: 0, r: 0.27 }],
};
const pair: Scene = {
  caption: 'a red circle above a blue square on a white background',
  format: 'portrait',
  ground: 'white',
  kind: 'plain',
  mode: 'two',
  relation: 'above',
  items: [
    { shape: 'circle', color: 'red', finish: 'glossy', x: 0, y: -0.28, r: 0.17 },
    { shape: 'square', color: 'blue', finish: 'outlined', x: 0, y: 0.28, r: 0.17 },
  ],
};
const changed = (scene: Scene, change: Partial<Scene['items'][number]>, index = 0): Scene => ({
  ...scene,
  items: scene.items.map((item, i) => (i === index ? { ...item, ...change } : item)),
});

/** The judge of models, on exact pictures, and on pictures with one error. */
describe(judge.name, () => {
  it('accepts exact pictures of random captions', () => {
    const random = randomFrom(3);
    for (let i = 0; i < 12; i++) {
      const scene = sampleScene(random);
      expect({ caption: scene.caption, ...judge(scene, render(scene)) }).toMatchObject({
        caption: scene.caption,
        problems: [],
      });
    }
  });

  it.each<[string, Scene, Scene, RegExp]>([
    ['another shape', star, changed(star, { shape: 'circle' }), /^outline/],
    ['a heart for a triangle', changed(star, { shape: 'triangle' }), changed(star, { shape: 'heart' }), /^outline/],
    ['a full circle for a ring', changed(star, { shape: 'ring' }), changed(star, { shape: 'circle' }), /^outline/],
    ['another size', star, changed(star, { r: 0.18 }), /^size/],
    ['another ground', star, { ...star, ground: 'pink' }, /^ground/],
    ['no marks on the ground', { ...star, kind: 'dotted' }, star, /^ground/],
    ['an object that is missing', pair, { ...pair, items: pair.items.slice(1) }, /^number/],
    [
      'one object too many',
      star,
      { ...star, items: [star.items[0], { ...star.items[0], x: 0.4, r: 0.08 }] },
      /^number/,
    ],
    ['the wrong order', pair, { ...pair, items: pair.items.map((item) => ({ ...item, y: -item.y })) }, /^place/],
    ['a hexagon for an outlined square', pair, changed(pair, { shape: 'hexagon' }, 1), /^outline/],
  ])('reports what is wrong with %s', (_, said, drawn, problem) => {
    expect(judge(said, render(drawn)).problems[0]).toMatch(problem);
  });

  it('reports a color that is too far off', () => {
    const picture = render(star);
    for (let i = 0; i < picture.data.length; i += 3) if (picture.data[i] < 60) picture.data[i + 2] += 50;
    expect(judge(star, picture).problems).toEqual([expect.stringMatching(/^color: green is off by 50/)]);
  });
});
