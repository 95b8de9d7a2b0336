/**
 * node scenes.cjs SEED COUNT OUT.json: the scenes that `scripts/judge-model.mjs` draws for this seed. Needs a build.
 */
const { writeFileSync } = require('node:fs');
const { judge } = require('../../../dist/bench/judge/judge.js');
const { render } = require('../../../dist/bench/judge/render.js');
const { randomFrom, sampleScene } = require('../../../dist/bench/judge/scenes.js');

const [, , seed, count, out] = process.argv;
const random = randomFrom(Number(seed));
const scenes = [];
while (scenes.length < Number(count)) {
  const scene = sampleScene(random);
  if (judge(scene, render(scene)).problems.length === 0) scenes.push(scene);
}
writeFileSync(out, JSON.stringify(scenes));
