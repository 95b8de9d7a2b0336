/**
 * node verdicts.cjs SCENES.json FOLDER OUT.json: judges FOLDER/<index>.rgb (raw, rows of RGB) as
 * `scripts/judge-model.mjs` does. Needs a build.
 */
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { judge } = require('../../../dist/bench/judge/judge.js');
const { sizeOf } = require('../../../dist/bench/judge/scenes.js');

const [, , scenesFile, folder, out] = process.argv;
const scenes = JSON.parse(readFileSync(scenesFile, 'utf8'));
const verdicts = [];
for (const [i, scene] of scenes.entries()) {
  const file = join(folder, `${i}.rgb`);
  if (!existsSync(file)) continue;
  const [width, height] = sizeOf[scene.format];
  const { mode, relation, caption, format } = scene;
  const items = scene.items.map(({ shape, finish, color }) => [shape, finish, color]);
  verdicts.push({
    i,
    mode,
    relation,
    caption,
    format,
    items,
    ...judge(scene, { data: readFileSync(file), width, height }),
  });
}
writeFileSync(out, JSON.stringify(verdicts));

const right = (some) => `${some.filter(({ problems }) => problems.length === 0).length}/${some.length}`;
const wrong = {};
for (const { problems } of verdicts)
  for (const kind of new Set(problems.map((problem) => problem.split(':')[0]))) wrong[kind] = (wrong[kind] ?? 0) + 1;
const overlap = Number((verdicts.reduce((sum, verdict) => sum + verdict.overlap, 0) / verdicts.length).toFixed(4));
const modes = ['one', 'two', 'many'].map(
  (mode) => `${mode} ${right(verdicts.filter((verdict) => verdict.mode === mode))}`,
);
console.log(JSON.stringify({ right: right(verdicts), overlap, wrong, modes: modes.join(', ') }));
