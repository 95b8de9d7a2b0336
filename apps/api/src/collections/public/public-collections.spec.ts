import { applyTemplate, isIdentifier, limits, stylePlaceholder, toTemplate } from '@app/domain';
import type { PublicCollection } from './public-collections.seeder';
import data from './collections.json';

const collections: PublicCollection[] = data;
const styles = collections.flatMap((collection) => collection.styles);

describe('public Collections', () => {
  it('are at least four of six Styles each', () => {
    expect(collections.length).toBeGreaterThanOrEqual(4);
    for (const collection of collections) expect(collection.styles.length).toBeGreaterThanOrEqual(6);
  });

  it('have ids and tokens that are well-formed and never shared', () => {
    const ids = [...collections.map(({ id }) => id), ...styles.flatMap(({ id, token }) => [id, token])];
    expect(ids.filter((id) => !isIdentifier(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('have names of their own', () => {
    for (const names of [collections.map(({ name }) => name), styles.map(({ name }) => name)])
      expect(new Set(names).size).toBe(names.length);
  });

  it.each(styles)('$name holds the place-holder, no stray brace, and leaves the controls to the model', (style) => {
    const words = { token: 'zwx', name: 'robot' };
    expect(style.template.split(stylePlaceholder)).toHaveLength(2);
    expect(toTemplate(applyTemplate(style.template, words), words)).toBe(style.template);
    expect(style.template.length).toBeLessThan(limits.promptLength / 2);
    for (const control of ['cfg', 'steps']) expect(Object.keys(style)).not.toContain(control);
    expect(style.negative_prompt === null || style.negative_prompt.length > 0).toBe(true);
  });
});
