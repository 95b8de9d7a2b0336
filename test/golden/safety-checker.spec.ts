import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cures, readSafetyFolder, SafetyChecker } from '@app/diffusion';
import { findSafetyFolder } from '@app/diffusion/files';
import { isFlagged, visionPixels } from '../../libs/diffusion/src/safety/safety-checker';
import { cpu } from '../support/cpu';
import { unpackFamily } from '../support/families';
import { largestDifference, recordGolden } from '../support/golden';
import { safetyPicture } from '../support/safety-pictures';

interface Expected {
  flags: boolean[];
  /** Of each picture one value in 15,013, as the checker gets them. */
  pixels: number[][];
  special_scores: number[][];
  concept_scores: number[][];
}

describe(SafetyChecker.name, () => {
  const folder = mkdtempSync(join(tmpdir(), 'safety-'));
  const config = join(folder, 'safety_checker/config.json');
  let expected: Expected;
  beforeEach(async () => {
    await unpackFamily('safety', folder);
    expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expected;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("sees, scores and flags fifty pictures as diffusers' does", async () => {
    const checker = await SafetyChecker.open(await readSafetyFolder(folder), cpu);
    let [worst, flagged] = [0, 0];
    for (const [i, flag] of expected.flags.entries()) {
      const picture = safetyPicture(i);
      const pixels = visionPixels(picture).filter((_, at) => at % 15_013 === 0);
      expect(largestDifference(pixels, expected.pixels[i])).toBeLessThan(1e-5);
      const scores = await checker.scores(picture);
      const { special, concepts } = scores;
      worst = Math.max(worst, largestDifference(special, expected.special_scores[i]));
      worst = Math.max(worst, largestDifference(concepts, expected.concept_scores[i]));
      expect([i, isFlagged(scores)]).toEqual([i, flag]);
      if (flag) flagged++;
    }
    await checker.release();
    recordGolden('safety checker', expected.flags.length, worst, 1e-4);
    expect(worst).toBeLessThan(1e-4);
    expect(flagged).toBeGreaterThan(9);
  });

  it.each([
    [{ hidden_act: 'relu' }, '"hidden_act" is "relu"'],
    [{ num_attention_heads: 7 }, '"num_attention_heads" is 7, and by the weights a token is 32 wide'],
    [{ image_size: 336 }, '"image_size" is 336'],
  ])('refuses a configuration of another model: %p', async (changes, reason) => {
    const json = JSON.parse(readFileSync(config, 'utf8')) as { vision_config: object };
    writeFileSync(config, JSON.stringify({ ...json, vision_config: { ...json.vision_config, ...changes } }));
    await expect(findSafetyFolder(folder)).rejects.toThrow(`describes another model: ${reason}`);
    await expect(findSafetyFolder(folder)).rejects.toThrow(cures.otherSafety);
  });
});
